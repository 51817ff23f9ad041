// How sure a mean over executions is: intervals by resampling the executions (Efron, "Bootstrap
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
// Executions drawn in all: beyond it there are fewer resamples, at least kFewestResamples.
inline constexpr std::size_t kMostDraws = 20'000'000;
inline constexpr int kFewestResamples = 100;

struct BootstrapOptions {
  std::uint64_t seed = 1;
  int resamples = 1000;  // 0: no intervals
};

// Holds 95 % of the resamples' values.
struct Interval {
  double low = 0, high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Of a list of executions, each of them any number of times, given by index: the values of so many
// statistics; absent where one does not exist there.
using Statistics =
    std::function<std::vector<std::optional<double>>(std::span<const std::size_t>)>;

// One interval per statistic: absent with fewer than two executions, without resamples, and where
// the statistic existed in fewer than half of them. Paired: all see the same resamples.
std::vector<std::optional<Interval>> bootstrap(std::size_t executions, std::size_t statistics,
                                               const BootstrapOptions& options,
                                               const Statistics& of);

}  // namespace cgphase
