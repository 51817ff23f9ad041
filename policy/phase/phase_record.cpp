#include "policy/phase/phase_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace cgphase {
namespace {

constexpr int kSchema = 1;
constexpr int kMaxRuns = 1'000'000;
constexpr double kMaxDepartures = 1e9;

// Autopilot's half-lives (EuroSys'20): CPU use changes faster than memory use.
constexpr double kCpuHalfLifeSeconds = 12 * 3600;
constexpr double kMemoryHalfLifeSeconds = 48 * 3600;
constexpr DecayingHistogram::Shape kCpuShape{0.01, kCpuHalfLifeSeconds};
constexpr DecayingHistogram::Shape kMemoryShape{1e7, kMemoryHalfLifeSeconds};
constexpr DecayingHistogram::Shape kDwellShape{1, kMemoryHalfLifeSeconds};

constexpr double kForever = 1e9;  // seconds

// Probability that a visit of length `age` ends within `horizon`. The first and last bucket count
// fully.
double leave_probability(const PhaseRecord& record, double age, double horizon) {
  const double longer = record.dwell_seconds.weight_between(age, kForever);
  if (!(longer > 0)) return record.departed() ? 1 : 0;
  return std::min(1.0, record.dwell_seconds.weight_between(age, age + horizon) / longer);
}

Result<DecayingHistogram> histogram_at(const nlohmann::json& json, const char* key,
                                       const DecayingHistogram::Shape& shape) {
  const auto found = json.find(key);
  if (found == json.end())
    return failure(ErrorKind::invalid, std::string("phase record without \"") + key + '"');
  return DecayingHistogram::from_json(*found, shape);
}

std::optional<int> integer_at(const nlohmann::json& json, const char* key, int most) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  const double value = found->get<double>();
  if (!(value >= 0 && value <= most)) return std::nullopt;
  return static_cast<int>(value);
}

Status read_next(const nlohmann::json& json, PhaseRecord& record) {
  const auto list = json.find("next");
  if (list == json.end() || !list->is_array() || list->size() != kPhaseSlots)
    return failure(ErrorKind::invalid, "phase record: \"next\" is not a list of 33 numbers");
  for (std::size_t i = 0; i < kPhaseSlots; ++i) {
    if (!(*list)[i].is_number())
      return failure(ErrorKind::invalid, "phase record: a successor count is not a number");
    const double count = (*list)[i].get<double>();
    if (!(count >= 0 && count <= kMaxDepartures))
      return failure(ErrorKind::invalid, "phase record: a successor count is out of range");
    if (count > 0) record.next[i] = count;
  }
  return {};
}

Result<PhaseRecord> read_record(const nlohmann::json& json) {
  PhaseRecord record;
  const auto runs = integer_at(json, "runs", kMaxRuns);
  if (!runs) return failure(ErrorKind::invalid, "phase record: \"runs\" is not a count");
  record.runs = *runs;
  auto cpu = histogram_at(json, "cpu_cores", kCpuShape);
  if (!cpu) return std::unexpected(cpu.error());
  auto memory = histogram_at(json, "memory_bytes", kMemoryShape);
  if (!memory) return std::unexpected(memory.error());
  auto dwell = histogram_at(json, "dwell_seconds", kDwellShape);
  if (!dwell) return std::unexpected(dwell.error());
  record.cpu_cores = std::move(*cpu);
  record.memory_bytes = std::move(*memory);
  record.dwell_seconds = std::move(*dwell);
  if (auto next = read_next(json, record); !next) return std::unexpected(next.error());
  return record;
}

}  // namespace

double Successors::operator[](std::size_t slot) const {
  const auto found = std::ranges::find(entries_, slot, &Entry::slot);
  return found == entries_.end() ? 0 : found->count;
}

double& Successors::operator[](std::size_t slot) {
  const auto place = std::ranges::lower_bound(entries_, slot, {}, &Entry::slot);
  if (place != entries_.end() && place->slot == slot) return place->count;
  return entries_.insert(place, {static_cast<std::uint8_t>(slot), 0})->count;
}

PhaseRecord::PhaseRecord()
    : cpu_cores(kCpuShape), memory_bytes(kMemoryShape), dwell_seconds(kDwellShape) {}

double PhaseRecord::departures() const {
  double sum = 0;
  for (const Successors::Entry& entry : next) sum += entry.count;
  return sum;
}

bool PhaseRecord::departed() const {
  return std::any_of(next.begin(), next.end(), [](const auto& entry) { return entry.count > 0; });
}

std::array<double, kPhaseSlots> visit_probabilities(const PhaseRecords& records, int slot,
                                                    double age_seconds, double horizon_seconds) {
  constexpr int kChanges = 3;
  std::array<double, kPhaseSlots> visited{}, here{};
  here[static_cast<std::size_t>(slot)] = 1;
  visited = here;
  for (int change = 0; change < kChanges; ++change) {
    std::array<double, kPhaseSlots> there{};
    for (const auto& [from, record] : records) {
      const double present = here[static_cast<std::size_t>(from)];
      const double departures = record.departures();
      if (present <= 0 || departures <= 0) continue;
      const double age = change == 0 ? age_seconds : 0;
      const double leaving = present * leave_probability(record, age, horizon_seconds);
      for (const Successors::Entry& to : record.next)
        there[to.slot] += leaving * to.count / departures;
    }
    for (std::size_t i = 0; i < visited.size(); ++i)
      visited[i] = std::min(1.0, visited[i] + there[i]);
    here = there;
  }
  return visited;
}

std::optional<double> usual_rest(const PhaseRecord& record, double age_seconds) {
  const DecayingHistogram& dwell = record.dwell_seconds;
  const double total = dwell.total_weight();
  const double longer = dwell.weight_between(age_seconds, kForever);
  if (!(total > 0 && longer > 0)) return std::nullopt;
  const auto usual = dwell.quantile(1 - longer / total / 2);
  return usual && *usual > age_seconds ? std::optional(*usual - age_seconds) : std::nullopt;
}

void merge_records(PhaseRecords& records, const PhaseRecords& other, double factor) {
  for (const auto& [slot, from] : other) {
    PhaseRecord& to = records[slot];
    to.cpu_cores.merge(from.cpu_cores, factor);
    to.memory_bytes.merge(from.memory_bytes, factor);
    to.dwell_seconds.merge(from.dwell_seconds, factor);
    for (const Successors::Entry& entry : from.next)
      to.next[entry.slot] += factor * entry.count;
    to.runs = std::min(to.runs + from.runs, kMaxRuns);
  }
}

namespace {

nlohmann::json next_to_json(const Successors& next) {
  std::array<double, kPhaseSlots> counts{};
  for (const Successors::Entry& entry : next) counts[entry.slot] = entry.count;
  return counts;
}

}  // namespace

nlohmann::json records_to_json(const PhaseRecords& records) {
  nlohmann::json phases = nlohmann::json::array();
  for (const auto& [slot, record] : records)
    phases.push_back({{"slot", slot},
                      {"runs", record.runs},
                      {"cpu_cores", record.cpu_cores.to_json()},
                      {"memory_bytes", record.memory_bytes.to_json()},
                      {"dwell_seconds", record.dwell_seconds.to_json()},
                      {"next", next_to_json(record.next)}});
  return {{"schema", kSchema}, {"policy", "phase"}, {"phases", std::move(phases)}};
}

Result<PhaseRecords> records_from_json(const nlohmann::json& json) {
  if (!json.is_object() || integer_at(json, "schema", kSchema) != kSchema)
    return failure(ErrorKind::invalid, "phase records: the schema is not 1");
  const auto phases = json.find("phases");
  if (phases == json.end() || !phases->is_array() || phases->size() > kPhaseSlots)
    return failure(ErrorKind::invalid, "phase records: \"phases\" is not a list of at most 33");
  PhaseRecords records;
  for (const auto& entry : *phases) {
    const auto slot = integer_at(entry, "slot", kPhaseSlots - 1);
    if (!slot || records.contains(*slot))
      return failure(ErrorKind::invalid, "phase records: a slot is out of range or occurs twice");
    auto record = read_record(entry);
    if (!record) return std::unexpected(record.error());
    records.emplace(*slot, std::move(*record));
  }
  return records;
}

}  // namespace cgphase
