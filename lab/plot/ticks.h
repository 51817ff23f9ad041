// Round numbers along an axis. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cgphase {

struct Ticks {
  std::vector<double> values;  // ascending from 0, evenly spaced, at least one
  int decimals = 0;            // as many as distinguish the values
  double top() const { return values.back(); }
  std::string label(std::size_t index) const;
};

// Returns ticks from 0 to the first one at or above `top`, in steps of 1, 2 or 5 times a power of
// ten. There are at most `most` (>= 1) steps. A `top` that is not finite or not above kLeastTop
// counts as 1.
inline constexpr double kLeastTop = 1e-9;
Ticks value_ticks(double top, int most);

// Ticks of a time span that starts at 0.
struct TimeTicks {
  Ticks ticks;              // in `unit`, none beyond the span
  double unit_seconds = 1;
  const char* unit = "s";  // "s", "min", "h" or "d": the largest that is not longer than a step
};

// Returns steps of a clock: 1, 2, 5, 10, 15, 30 s or min, 1, 2, 3, 6, 12 h. For days, and for
// seconds below 1 s, the steps are 1, 2, 5 times a power of ten. At most `most` (>= 1) steps.
TimeTicks time_ticks(double span_seconds, int most);

}  // namespace cgphase
