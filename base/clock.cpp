#include "base/clock.h"

namespace cgphase {

MonotonicTime SystemClock::monotonic_now() const { return std::chrono::steady_clock::now(); }

WallTime SystemClock::wall_now() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
}

}  // namespace cgphase
