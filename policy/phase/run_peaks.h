// Peaks of whole earlier runs of an image, from which a new run starts. A complete run proves more
// than the same number of samples of this one.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"

namespace cgphase {

struct RunPeak {
  double samples = 0;
  double cpu_cores = 0;     // 0: not measured
  double memory_bytes = 0;  // need
  double memory_rise_bytes_per_sec = 0;  // the steepest rise

  friend bool operator==(const RunPeak&, const RunPeak&) = default;
};

// Oldest first, at most kRunsKept. A peak is dropped after that many further runs.
using RunPeaks = std::vector<RunPeak>;
inline constexpr std::size_t kRunsKept = 8;

void add_runs(RunPeaks& earlier, const RunPeaks& later);
RunPeak highest_of(const RunPeaks& runs);  // per measure; samples add up

// Errors: invalid (too many runs, a number out of range).
Status check_run_peaks(const RunPeaks& runs);

}  // namespace cgphase
