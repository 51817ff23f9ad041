// What `oracle-max` would allocate: the line that every other policy's allocation is told against.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace cgphase {

// Of each sample the largest value within (its time, its time + window], at least that of the next
// one; of the last sample its own. Absent values do not count; a sample with none ahead: absent.
// `seconds` ascends and has the size of `values`.
std::vector<std::optional<double>> coming_maximum(std::span<const double> seconds,
                                                  std::span<const std::optional<double>> values,
                                                  double window_seconds);

}  // namespace cgphase
