// What the policies `phase` and `proactive` learn from the runs of one image.
#pragma once

#include "base/result.h"
#include "policy/phase/phase_peaks.h"
#include "policy/phase/phase_record.h"
#include "policy/phase/run_peaks.h"

namespace cgphase {

struct LearnedPhases {
  static constexpr int kVersion = 1;  // changes with the meaning of any member

  PhaseRecords records;  // demand, dwell times and successors of each phase, without times
  PhasePeaks peaks;      // demand after each moment
  RunPeaks runs;         // peaks of whole runs
};

// Errors: invalid (a member is out of bounds).
Status check(const LearnedPhases& learned);
// Adds the statistics of one run to the decayed ones of earlier runs. Both must be within bounds.
LearnedPhases merge(const LearnedPhases& earlier, const LearnedPhases& run);

}  // namespace cgphase
