#include "policy/phase/learned_phases.h"

#include "policy/phase/learned_usage.h"

namespace cgphase {

Status check(const LearnedPhases& learned) {
  if (Status good = check_records(learned.records); !good) return good;
  if (Status good = check_peaks(learned.peaks); !good) return good;
  return check_run_peaks(learned.runs);
}

LearnedPhases merge(const LearnedPhases& earlier, const LearnedPhases& run) {
  LearnedPhases merged{.records = {}, .peaks = earlier.peaks, .runs = earlier.runs};
  merge_records(merged.records, earlier.records, kRunDecay);
  merge_records(merged.records, run.records, 1);
  for (auto& [slot, record] : merged.records) record = without_times(record);
  merge_peaks(merged.peaks, run.peaks);
  add_runs(merged.runs, run.runs);
  return merged;
}

}  // namespace cgphase
