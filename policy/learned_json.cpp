#include "policy/learned_json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cgphase {
namespace {

using nlohmann::json;

constexpr double kMostInteger = 1e9;  // the bounds of each member are narrower

std::unexpected<Error> refuse_learned(const std::string& why) {
  return failure(ErrorKind::invalid, "learned state: " + why);
}

std::optional<double> number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<int> whole_number(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= -kMostInteger && number <= kMostInteger)) return std::nullopt;
  return static_cast<int>(number);
}

std::optional<int> integer_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nullopt : whole_number(*found);
}

json histogram_to_json(const DecayingHistogram& histogram) {
  json weights = json::array();
  for (const DecayingHistogram::Bucket& bucket : histogram.buckets())
    weights.push_back({bucket.index, bucket.weight});
  return {{"first", histogram.shape().first},
          {"half_life_seconds", histogram.shape().half_life_seconds},
          {"count", histogram.count()},
          {"weights", std::move(weights)}};
}

Result<DecayingHistogram> histogram_at(const json& object, const char* key) {
  const auto refuse = [key](const char* why) {
    return refuse_learned("the histogram \"" + std::string(key) + "\" " + why);
  };
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return refuse("is missing or not an object");
  const auto first = number_at(*found, "first"), half_life = number_at(*found, "half_life_seconds");
  if (!first || !(*first > 0) || !half_life || !(*half_life > 0))
    return refuse("has no buckets or no half-life");
  const auto count = number_at(*found, "count");
  if (!count) return refuse("has no count");
  const auto weights = found->find("weights");
  if (weights == found->end() || !weights->is_array() ||
      weights->size() > DecayingHistogram::kMaxBuckets)
    return refuse("has no list of at most 400 weights");
  std::vector<DecayingHistogram::Bucket> buckets;
  for (const json& pair : *weights) {
    const bool is_pair = pair.is_array() && pair.size() == 2 && pair[1].is_number();
    const auto index = is_pair ? whole_number(pair[0]) : std::nullopt;
    if (!index) return refuse("has a weight that is not a pair of bucket and number");
    buckets.push_back({*index, pair[1].get<double>()});
  }
  return DecayingHistogram::from_buckets({*first, *half_life}, *count, buckets);
}

json next_to_json(const Successors& next) {
  std::array<double, kPhaseSlots> counts{};
  for (const Successors::Entry& entry : next) counts[entry.slot] = entry.count;
  return counts;
}

json records_to_json(const PhaseRecords& records) {
  json phases = json::array();
  for (const auto& [slot, record] : records)
    phases.push_back({{"slot", slot},
                      {"runs", record.runs},
                      {"cpu_cores", histogram_to_json(record.cpu_cores)},
                      {"memory_bytes", histogram_to_json(record.memory_bytes)},
                      {"dwell_seconds", histogram_to_json(record.dwell_seconds)},
                      {"next", next_to_json(record.next)}});
  return phases;
}

// The buckets and half-lives of phases are the same in every record.
Status read_histogram(const json& object, const char* key, DecayingHistogram& to) {
  auto histogram = histogram_at(object, key);
  if (!histogram) return std::unexpected(histogram.error());
  if (histogram->shape() != to.shape())
    return refuse_learned("the buckets or the half-life of \"" + std::string(key) + "\" differ");
  to = *std::move(histogram);
  return {};
}

Status read_next(const json& object, Successors& next) {
  const auto list = object.find("next");
  if (list == object.end() || !list->is_array() || list->size() != kPhaseSlots)
    return refuse_learned("\"next\" is not a list of 33 numbers");
  for (std::size_t i = 0; i < kPhaseSlots; ++i) {
    if (!(*list)[i].is_number()) return refuse_learned("a successor count is not a number");
    if (const double count = (*list)[i].get<double>(); count != 0) next[i] = count;
  }
  return {};
}

Result<PhaseRecord> record_from_json(const json& object) {
  PhaseRecord record;
  const auto runs = integer_at(object, "runs");
  if (!runs) return refuse_learned("the \"runs\" of a phase are not a count");
  record.runs = *runs;
  Status read = read_histogram(object, "cpu_cores", record.cpu_cores);
  if (read) read = read_histogram(object, "memory_bytes", record.memory_bytes);
  if (read) read = read_histogram(object, "dwell_seconds", record.dwell_seconds);
  if (read) read = read_next(object, record.next);
  if (!read) return std::unexpected(read.error());
  return record;
}

Result<PhaseRecords> records_from_json(const json& phases) {
  if (!phases.is_array() || phases.size() > kPhaseSlots)
    return refuse_learned("\"phases\" is not a list of at most 33");
  PhaseRecords records;
  for (const json& entry : phases) {
    const auto slot = integer_at(entry, "slot");
    if (!slot || records.contains(*slot))
      return refuse_learned("the slot of a phase is not a number or occurs twice");
    auto record = record_from_json(entry);
    if (!record) return std::unexpected(record.error());
    records.emplace(*slot, *std::move(record));
  }
  return records;
}

json peaks_to_json(const PhasePeaks& peaks) {
  json list = json::array();
  for (const auto& [moment, peak] : peaks)
    list.push_back({{"slot", moment.slot},
                    {"previous", moment.previous},
                    {"age", moment.age},
                    {"moments", peak.moments},
                    {"visits", peak.visits},
                    {"cpu_cores", peak.cpu_cores},
                    {"cpu_jumps", peak.cpu_jumps},
                    {"cpu_jump_cores", peak.cpu_jump_cores},
                    {"memory_bytes", peak.memory_bytes},
                    {"memory_jumps", peak.memory_jumps}});
  return list;
}

Result<PhasePeaks> peaks_from_json(const json& list) {
  if (!list.is_array()) return refuse_learned("\"peaks\" is not a list");
  PhasePeaks peaks;
  for (const json& entry : list) {
    const auto slot = integer_at(entry, "slot"), previous = integer_at(entry, "previous"),
               age = integer_at(entry, "age");
    if (!slot || !previous || !age) return refuse_learned("the moment of a peak is missing");
    const auto moments = number_at(entry, "moments"), visits = number_at(entry, "visits"),
               cpu = number_at(entry, "cpu_cores"), memory = number_at(entry, "memory_bytes"),
               jumps = number_at(entry, "cpu_jumps"),
               jump_cores = number_at(entry, "cpu_jump_cores");
    // An earlier version did not store this number. Any of the moments may have been a jump.
    const auto rises =
        entry.contains("memory_jumps") ? number_at(entry, "memory_jumps") : moments;
    if (!moments || !visits || !cpu || !memory || !jumps || !jump_cores || !rises)
      return refuse_learned("a number of a peak is missing");
    const PeakAhead peak{*moments, *visits, *cpu, *memory, *jumps, *jump_cores, *rises};
    if (!peaks.emplace(PhaseMoment{*slot, *previous, *age}, peak).second)
      return refuse_learned("the moment of a peak occurs twice");
  }
  return peaks;
}

json runs_to_json(const RunPeaks& runs) {
  json list = json::array();
  for (const RunPeak& run : runs)
    list.push_back({{"samples", run.samples},
                    {"cpu_cores", run.cpu_cores},
                    {"memory_bytes", run.memory_bytes},
                    {"memory_rise_bytes_per_sec", run.memory_rise_bytes_per_sec}});
  return list;
}

Result<RunPeaks> runs_from_json(const json& list) {
  if (!list.is_array()) return refuse_learned("the \"runs\" are not a list");
  RunPeaks runs;
  for (const json& entry : list) {
    const auto samples = number_at(entry, "samples"), cpu = number_at(entry, "cpu_cores"),
               memory = number_at(entry, "memory_bytes"),
               rise = number_at(entry, "memory_rise_bytes_per_sec");
    if (!samples || !cpu || !memory || !rise)
      return refuse_learned("a number of a run is missing");
    runs.push_back({*samples, *cpu, *memory, *rise});
  }
  return runs;
}

json to_json(const LearnedPhases& learned) {
  return {{"schema", LearnedPhases::kVersion},
          {"policy", "phase"},
          {"phases", records_to_json(learned.records)},
          {"peaks", peaks_to_json(learned.peaks)},
          {"runs", runs_to_json(learned.runs)}};
}

Result<LearnedPhases> phases_from_json(const json& object) {
  LearnedPhases learned;
  auto records = records_from_json(object["phases"]);
  if (!records) return std::unexpected(records.error());
  learned.records = *std::move(records);
  if (const auto list = object.find("peaks"); list != object.end()) {
    auto peaks = peaks_from_json(*list);
    if (!peaks) return std::unexpected(peaks.error());
    learned.peaks = *std::move(peaks);
  }
  if (const auto list = object.find("runs"); list != object.end()) {
    auto runs = runs_from_json(*list);
    if (!runs) return std::unexpected(runs.error());
    learned.runs = *std::move(runs);
  }
  if (Status good = check(learned); !good) return std::unexpected(good.error());
  return learned;
}

json to_json(const LearnedUsage& learned) {
  return {{"schema", LearnedUsage::kVersion},
          {"policy", learned.policy},
          {"runs", learned.runs},
          {"cpu_cores", histogram_to_json(learned.cpu_cores)},
          {"memory_bytes", histogram_to_json(learned.memory_bytes)}};
}

Result<LearnedUsage> usage_from_json(const json& object) {
  const auto policy = object.find("policy");
  if (policy == object.end() || !policy->is_string()) return refuse_learned("no policy is named");
  const auto runs = integer_at(object, "runs");
  if (!runs) return refuse_learned("\"runs\" is not a count");
  auto cpu = histogram_at(object, "cpu_cores");
  if (!cpu) return std::unexpected(cpu.error());
  auto memory = histogram_at(object, "memory_bytes");
  if (!memory) return std::unexpected(memory.error());
  LearnedUsage learned(policy->get_ref<const std::string&>(), {cpu->shape(), memory->shape()});
  learned.cpu_cores = *std::move(cpu);
  learned.memory_bytes = *std::move(memory);
  learned.runs = *runs;
  if (Status good = check(learned); !good) return std::unexpected(good.error());
  return learned;
}

}  // namespace

json learned_to_json(const LearnedState& learned) {
  if (const auto* phases = std::get_if<LearnedPhases>(&learned)) return to_json(*phases);
  if (const auto* usage = std::get_if<LearnedUsage>(&learned)) return to_json(*usage);
  return nullptr;
}

Result<LearnedState> learned_from_json(const json& value) {
  if (value.is_null()) return LearnedState{};
  const auto schema = value.is_object() ? integer_at(value, "schema") : std::nullopt;
  const bool phases = value.contains("phases");
  if (schema != (phases ? LearnedPhases::kVersion : LearnedUsage::kVersion))
    return refuse_learned("the schema is not 1");
  if (phases) return phases_from_json(value);
  return usage_from_json(value);
}

}  // namespace cgphase
