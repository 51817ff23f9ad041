// Recommendation of `oracle-max`, the reference for the allocation of every policy.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace cgphase {

// For each sample, returns the largest value within (its time, its time + window], at least that of
// the next sample. For the last sample, its own value. Absent values do not count; a sample with no
// value ahead is absent. `seconds` ascends and has the size of `values`.
std::vector<std::optional<double>> coming_maximum(std::span<const double> seconds,
                                                  std::span<const std::optional<double>> values,
                                                  double window_seconds);

}  // namespace cgphase
