#include "traces/trace_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace cgphase {
namespace {

constexpr std::array<TimeForm, 4> kUnits = {TimeForm::seconds, TimeForm::milliseconds,
                                            TimeForm::microseconds, TimeForm::nanoseconds};
constexpr double kLongestStep = 86'400;
constexpr double kRateTolerance = 0.1;

}  // namespace

std::string_view time_form_name(TimeForm form) {
  constexpr std::array<std::string_view, 5> kNames = {"seconds", "milliseconds", "microseconds",
                                                      "nanoseconds", "ISO 8601"};
  return kNames[static_cast<std::size_t>(form)];
}

double per_second(TimeForm form) {
  constexpr std::array<double, 5> kPerSecond = {1, 1e3, 1e6, 1e9, 1};
  return kPerSecond[static_cast<std::size_t>(form)];
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::optional<TimeForm> time_form_of(const TimeSeen& seen) {
  const double value = median_of(seen.values), step = median_of(seen.steps);
  const double rate = median_of(seen.rates);
  for (const TimeForm unit : kUnits) {
    const double seconds = value / per_second(unit);
    const bool date = seconds >= kFirstDate && seconds <= kLastDate;
    if (date && step <= kLongestStep * per_second(unit)) return unit;
  }
  for (const TimeForm unit : kUnits)
    if (std::abs(rate / per_second(unit) - 1) <= kRateTolerance) return unit;
  if (value <= kLastDate && step <= kLongestStep) return TimeForm::seconds;
  return std::nullopt;
}

}  // namespace cgphase
