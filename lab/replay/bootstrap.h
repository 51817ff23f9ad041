// Confidence intervals of means over executions, by resampling the executions (Efron, "Bootstrap
// Methods: Another Look at the Jackknife", Annals of Statistics 1979; the percentile interval).
// Pure: the same seed gives the same bits on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace cgphase {

inline constexpr int kMostResamples = 100'000;
// Most executions drawn in total. If there would be more, fewer resamples are used, but at least
// kFewestResamples.
inline constexpr std::size_t kMostDraws = 20'000'000;
inline constexpr int kFewestResamples = 100;

struct BootstrapOptions {
  std::uint64_t seed = 1;
  int resamples = 1000;  // 0: no intervals
};

// Contains 95 % of the resamples' values.
struct Interval {
  double low = 0, high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Takes indices of executions, with repetitions; returns the value of each statistic, absent if it
// is not defined there.
using Statistics =
    std::function<std::vector<std::optional<double>>(std::span<const std::size_t>)>;

// Returns one interval per statistic. It is absent with fewer than two executions, without
// resamples, or if fewer than half of the executions have the statistic. Paired: all statistics use
// the same resamples.
std::vector<std::optional<Interval>> bootstrap(std::size_t executions, std::size_t statistics,
                                               const BootstrapOptions& options,
                                               const Statistics& of);

}  // namespace cgphase
