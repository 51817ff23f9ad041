// What the policies `phase` and `proactive` learn from the runs of one image. Stored between runs
// as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "policy/phase/phase_peaks.h"
#include "policy/phase/phase_record.h"
#include "policy/phase/run_peaks.h"

namespace cgphase {

struct LearnedPhases {
  PhaseRecords records;  // demand, dwell times and successors of each phase
  PhasePeaks peaks;      // demand after each moment
  RunPeaks runs;         // peaks of whole runs
};

nlohmann::json learned_to_json(const LearnedPhases& learned);
// If "peaks" or "runs" is missing, as in older data, it is empty. Errors: invalid, with the reason.
Result<LearnedPhases> learned_from_json(const nlohmann::json& json);

// Merge function of these policies.
nlohmann::json merge_phase_records(const nlohmann::json& earlier, const nlohmann::json& run);

}  // namespace cgphase
