#include "model/train/training_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cgphase {
namespace {

// True if the difference is larger than the rounding of a rate.
bool differ(double low, double high) {
  constexpr double kRounding = 1e-9;
  return high - low > kRounding * std::max(std::abs(low), std::abs(high));
}

bool varies(const Dataset& data, std::size_t feature) {
  std::optional<double> low, high;
  for (const FeatureVector& step : data.steps) {
    const std::optional<double>& value = step.values[feature];
    if (!value || !std::isfinite(*value)) continue;
    low = std::min(low.value_or(*value), *value);
    high = std::max(high.value_or(*value), *value);
  }
  return low && differ(*low, *high);
}

bool anything_varies(const Dataset& data) {
  for (std::size_t feature = 0; feature < static_cast<std::size_t>(data.features); ++feature)
    if (varies(data, feature)) return true;
  return false;
}

// The reason why there is not a single step.
std::string unmeasured(const Dataset& data) {
  if (!data.optional.empty())
    return "no two consecutive rows have all of " + data.optional +
           " (docs/internals/model-file.md lists the columns that they need)";
  return "no two consecutive rows have CPU use (columns cpu.usage.usec, cpu.usage, "
         "cpu.usage.cores) or memory use (memory.anon, mem.working.set, mem.current)";
}

}  // namespace

Status check_training_input(const Dataset& data, double step_seconds, std::size_t needed,
                            const std::string& name) {
  const auto refuse = [&](const std::string& what) {
    return failure(ErrorKind::invalid, name + ": " + what);
  };
  if (data.size() < needed)
    return refuse(fmt::format(
        "gives {} windows of {} step{} of {} s without a gap, at least {} are needed: {}",
        data.size(), data.history + 1, data.history > 0 ? "s" : "", step_seconds, needed,
        data.steps.empty() ? unmeasured(data) : "record longer"));
  if (!anything_varies(data))
    return refuse(
        "every feature is the same in all rows, so there are no phases to find: record the "
        "container while it works");
  return {};
}

}  // namespace cgphase
