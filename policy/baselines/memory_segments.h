// Memory need of a run over time as a few segments, and predictions of it from earlier runs:
// k-Segments (Bader et al., "Predicting Dynamic Memory Requirements for Scientific Workflow Tasks",
// arXiv 2311.08185) and KS+ (Bader et al., "KS+: Predicting Workflow Task Memory Usage Over Time",
// arXiv 2408.12290). Pure. KS+ was compared with a public implementation, k-Segments with none.
//
// The papers predict each start and peak by linear regression on the input size. The input size of
// a container is not known. Without it, the regression is the mean over the runs. So the mean is
// used, with the papers' own corrections.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policy/policy_spec.h"

namespace cgphase {

// `peak_bytes` are enough from `start_seconds` after the start of the run until the next segment.
struct MemorySegment {
  double start_seconds = 0, peak_bytes = 0;

  friend bool operator==(const MemorySegment&, const MemorySegment&) = default;
};
using MemorySegments = std::vector<MemorySegment>;

// k-Segments: `count` segments of equal length, with the peak of each. The course is not empty.
MemorySegments equal_segments(const MemoryCourse& course, std::size_t count);
// KS+: a new segment starts where need exceeds all earlier need. Neighbours are merged until at
// most `count` are left. Those whose merging wastes least come first: difference of peaks x length
// of the earlier segment. The course is not empty.
MemorySegments rising_segments(const MemoryCourse& course, std::size_t count);

// The predictions for the next run, with `count` segments that never fall. Empty without runs.
//
// k-Segments: peaks are the mean plus the largest error of a run, the length is the mean minus the
// largest error. Without an input size these are the largest peaks and the shortest run.
MemorySegments predict_k_segments(std::span<const MemoryCourse* const> runs, std::size_t count);
// KS+: 0.85 x the mean start and 1.1 x the mean peak. A run with fewer segments keeps its last peak
// from its end on.
MemorySegments predict_ks_plus(std::span<const MemoryCourse* const> runs, std::size_t count);

}  // namespace cgphase
