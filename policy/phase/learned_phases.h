// What runs of one image taught the policies `phase` and `proactive`: kept between runs as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "policy/phase/phase_peaks.h"
#include "policy/phase/phase_record.h"
#include "policy/phase/run_peaks.h"

namespace cgphase {

struct LearnedPhases {
  PhaseRecords records;  // needs, dwell times and successors of each phase
  PhasePeaks peaks;      // what followed each moment
  RunPeaks runs;         // what whole runs reached
};

nlohmann::json learned_to_json(const LearnedPhases& learned);
// Without "peaks" or "runs", as an earlier version wrote it, these are empty. Errors: invalid,
// naming what is wrong.
Result<LearnedPhases> learned_from_json(const nlohmann::json& json);

// The merge_learned of these policies.
nlohmann::json merge_phase_records(const nlohmann::json& earlier, const nlohmann::json& run);

}  // namespace cgphase
