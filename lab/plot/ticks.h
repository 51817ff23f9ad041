// Round numbers along an axis. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cgphase {

struct Ticks {
  std::vector<double> values;  // ascending from 0, evenly spaced, at least one
  int decimals = 0;            // as many as tell them apart
  double top() const { return values.back(); }
  std::string label(std::size_t index) const;
};

// 0 and so on in steps of 1, 2 or 5 times a power of ten, at most `most` (>= 1) steps, up to the
// first tick at or above `top`. What is not above kLeastTop, and what is not finite, counts as 1.
inline constexpr double kLeastTop = 1e-9;
Ticks value_ticks(double top, int most);

// Of a span of time from 0 on.
struct TimeTicks {
  Ticks ticks;              // in `unit`, none beyond the span
  double unit_seconds = 1;
  const char* unit = "s";   // "s", "min", "h" or "d": the largest that is no longer than a step
};

// Steps that a clock would take: 1, 2, 5, 10, 15, 30 s or min, 1, 2, 3, 6, 12 h, and 1, 2, 5 times
// a power of ten of days or, below a second, of seconds. At most `most` (>= 1) steps.
TimeTicks time_ticks(double span_seconds, int most);

}  // namespace cgphase
