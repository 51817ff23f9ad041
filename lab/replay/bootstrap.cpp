#include "lab/replay/bootstrap.h"

#include <algorithm>

#include "base/check.h"
#include "model/train/random.h"

namespace cgphase {
namespace {

constexpr double kLow = 0.025, kHigh = 0.975;

// Interpolates linearly between values. `sorted` has at least one value.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 == sorted.size()) return sorted.back();
  return sorted[below] +
         (place - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

int resamples_of(std::size_t executions, int wanted) {
  const std::size_t most = std::max(kMostDraws / executions, std::size_t{kFewestResamples});
  return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(wanted), most));
}

}  // namespace

std::vector<std::optional<Interval>> bootstrap(std::size_t executions, std::size_t statistics,
                                               const BootstrapOptions& options,
                                               const Statistics& of) {
  std::vector<std::optional<Interval>> intervals(statistics);
  if (executions < 2 || options.resamples < 1) return intervals;
  const int resamples = resamples_of(executions, options.resamples);
  Random random(options.seed);
  std::vector<std::vector<double>> values(statistics);
  std::vector<std::size_t> drawn(executions);
  for (int i = 0; i < resamples; ++i) {
    for (std::size_t& index : drawn) index = random.below(executions);
    const std::vector<std::optional<double>> found = of(drawn);
    CHECK_INVARIANT(found.size() == statistics);
    for (std::size_t k = 0; k < statistics; ++k)
      if (found[k]) values[k].push_back(*found[k]);
  }
  for (std::size_t k = 0; k < statistics; ++k) {
    if (2 * values[k].size() < static_cast<std::size_t>(resamples)) continue;
    std::ranges::sort(values[k]);
    intervals[k] = Interval{quantile(values[k], kLow), quantile(values[k], kHigh)};
  }
  return intervals;
}

}  // namespace cgphase
