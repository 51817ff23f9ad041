#include "policy/phase/phase_record.h"

#include <algorithm>
#include <string>

namespace cgphase {
namespace {

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

PhaseRecord without_times(const PhaseRecord& record) {
  PhaseRecord stored = record;
  stored.cpu_cores = record.cpu_cores.without_times();
  stored.memory_bytes = record.memory_bytes.without_times();
  stored.dwell_seconds = record.dwell_seconds.without_times();
  return stored;
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

Status check_records(const PhaseRecords& records) {
  const auto refuse = [](const char* why) {
    std::string text = "phase records: ";
    return failure(ErrorKind::invalid, text += why);
  };
  for (const auto& [slot, record] : records) {
    if (slot < 0 || slot >= kPhaseSlots) return refuse("a slot is out of range");
    if (record.runs < 0 || record.runs > kMaxRuns) return refuse("\"runs\" is out of range");
    for (const auto* histogram : {&record.cpu_cores, &record.memory_bytes, &record.dwell_seconds})
      if (Status good = histogram->check(); !good) return good;
    for (const Successors::Entry& next : record.next)
      if (!(next.slot < kPhaseSlots && next.count >= 0 && next.count <= kMaxDepartures))
        return refuse("a successor count is out of range");
  }
  return {};
}

}  // namespace cgphase
