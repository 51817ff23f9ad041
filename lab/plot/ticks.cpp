#include "lab/plot/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cgphase {
namespace {

constexpr int kLeastExponent = -12;  // power of ten below a step of kLeastTop
constexpr double kPlainBelow = 1e7;  // larger numbers are written with an exponent
constexpr double kDaySeconds = 86'400;

// The unit for steps from this size on.
struct Unit {
  double seconds;
  const char* name;
};
constexpr Unit kUnits[] = {{kDaySeconds, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
constexpr double kClockSteps[] = {1,   2,   5,    10,   15,   30,    60,    120,   300,
                                  600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};

double power_of_ten(int exponent) {
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// For negative exponents it divides, so that 3 * 10^-1 is the double nearest to 0.3.
double scaled(double mantissa, int exponent) {
  return exponent >= 0 ? mantissa * power_of_ten(exponent) : mantissa / power_of_ten(-exponent);
}

// Multiples of a step, up to the first at or above `top`.
Ticks multiples(double mantissa, int exponent, double top) {
  // Rounding of the quotient must not add a tick.
  constexpr double kRounding = 1e-9;
  const double count = std::ceil(top / scaled(mantissa, exponent) - kRounding);
  Ticks ticks;
  ticks.decimals = std::max(0, -exponent);
  for (int i = 0; i <= static_cast<int>(std::max(count, 1.0)); ++i)
    ticks.values.push_back(scaled(mantissa * i, exponent));
  return ticks;
}

void drop_above(Ticks& ticks, double span) {
  while (ticks.values.size() > 1 && ticks.values.back() > span) ticks.values.pop_back();
}

TimeTicks ticks_of_step(double step_seconds, double span_seconds) {
  TimeTicks time;
  for (const Unit& unit : kUnits) {
    if (step_seconds < unit.seconds) continue;
    time.unit_seconds = unit.seconds;
    time.unit = unit.name;
    break;
  }
  time.ticks = multiples(step_seconds / time.unit_seconds, 0, span_seconds / time.unit_seconds);
  return time;
}

}  // namespace

std::string Ticks::label(std::size_t index) const {
  if (top() >= kPlainBelow) return fmt::format("{:g}", values[index]);
  return fmt::format("{:.{}f}", values[index], decimals);
}

Ticks value_ticks(double top, int most) {
  if (!std::isfinite(top) || !(top > kLeastTop)) top = 1;
  for (int exponent = kLeastExponent;; ++exponent)
    for (const double mantissa : {1.0, 2.0, 5.0})
      if (scaled(mantissa, exponent) * most >= top) return multiples(mantissa, exponent, top);
}

TimeTicks time_ticks(double span_seconds, int most) {
  TimeTicks time;
  const auto enough = [&](double step) { return step * most >= span_seconds; };
  const auto* const step = std::ranges::find_if(kClockSteps, enough);
  if (enough(kClockSteps[0] / 2)) {
    time.ticks = value_ticks(span_seconds, most);
  } else if (step != std::end(kClockSteps)) {
    time = ticks_of_step(*step, span_seconds);
  } else {
    time = {value_ticks(span_seconds / kDaySeconds, most), kDaySeconds, "d"};
  }
  drop_above(time.ticks, span_seconds / time.unit_seconds);
  return time;
}

}  // namespace cgphase
