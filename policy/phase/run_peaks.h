// What whole earlier runs of an image reached: where a new run starts. A run tells more than as
// many samples of this one do, for it was seen from its beginning to its end.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"

namespace cgphase {

struct RunPeak {
  double samples = 0;
  double cpu_cores = 0;     // 0 where nothing was measured
  double memory_bytes = 0;  // need
  double memory_rise_bytes_per_sec = 0;  // the steepest

  friend bool operator==(const RunPeak&, const RunPeak&) = default;
};

// Oldest first, at most kRunsKept: a peak is forgotten after as many runs without it.
using RunPeaks = std::vector<RunPeak>;
inline constexpr std::size_t kRunsKept = 8;

void add_runs(RunPeaks& earlier, const RunPeaks& later);
RunPeak highest_of(const RunPeaks& runs);  // of each measure; samples add up

nlohmann::json run_peaks_to_json(const RunPeaks& runs);
// Errors: invalid, naming what is wrong.
Result<RunPeaks> run_peaks_from_json(const nlohmann::json& json);

}  // namespace cgphase
