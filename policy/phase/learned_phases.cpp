#include "policy/phase/learned_phases.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "policy/phase/learned_usage.h"

namespace cgphase {

nlohmann::json learned_to_json(const LearnedPhases& learned) {
  nlohmann::json json = records_to_json(learned.records);
  json["peaks"] = peaks_to_json(learned.peaks);
  json["runs"] = run_peaks_to_json(learned.runs);
  return json;
}

Result<LearnedPhases> learned_from_json(const nlohmann::json& json) {
  LearnedPhases learned;
  auto records = records_from_json(json);
  if (!records) return std::unexpected(records.error());
  learned.records = std::move(*records);
  if (const auto list = json.find("peaks"); list != json.end()) {
    auto peaks = peaks_from_json(*list);
    if (!peaks) return std::unexpected(peaks.error());
    learned.peaks = std::move(*peaks);
  }
  if (const auto list = json.find("runs"); list != json.end()) {
    auto runs = run_peaks_from_json(*list);
    if (!runs) return std::unexpected(runs.error());
    learned.runs = std::move(*runs);
  }
  return learned;
}

nlohmann::json merge_phase_records(const nlohmann::json& earlier, const nlohmann::json& run) {
  const auto added = learned_from_json(run);
  if (!added) return earlier;
  LearnedPhases merged;
  if (auto before = learned_from_json(earlier)) {
    merge_records(merged.records, before->records, kRunDecay);
    merged.peaks = std::move(before->peaks);
    merged.runs = std::move(before->runs);
  }
  merge_records(merged.records, added->records, 1);
  merge_peaks(merged.peaks, added->peaks);
  add_runs(merged.runs, added->runs);
  return learned_to_json(merged);
}

}  // namespace cgphase
