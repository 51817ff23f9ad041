// What policies with one histogram per resource learn from the runs of one image, like VPA's
// checkpoints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/phase/histogram.h"

namespace cgphase {

// Weight of all earlier runs relative to the newest. After three runs half of it is left.
inline constexpr double kRunDecay = 0.8;

struct UsageShapes {
  DecayingHistogram::Shape cpu, memory;
};

// A half-life from a job's length, limited to 1 s ... 3 years. 1 s if it is not a number.
double bounded_half_life(double seconds);

struct LearnedUsage {
  static constexpr int kVersion = 1;  // changes with the meaning of any member

  LearnedUsage(std::string_view learning_policy, const UsageShapes& shapes)
      : policy(learning_policy), cpu_cores(shapes.cpu), memory_bytes(shapes.memory) {}
  std::string policy;  // that learned this; another one cannot use it
  DecayingHistogram cpu_cores, memory_bytes;  // without times
  int runs = 0;
};

// Errors: invalid (a member is out of bounds).
Status check(const LearnedUsage& learned);
// The same usage with the half-lives of `shapes`, which depend on the length of the job. Absent if
// it is out of bounds, or if another policy learned it or its buckets differ.
std::optional<LearnedUsage> with_shapes(const LearnedUsage& learned, std::string_view policy,
                                        const UsageShapes& shapes);
// Adds the statistics of one run to those of earlier runs, which are weighted by kRunDecay. `run`
// must be within bounds. Earlier runs that with_shapes() refuses are dropped.
LearnedUsage merge(const LearnedUsage& earlier, const LearnedUsage& run);

}  // namespace cgphase
