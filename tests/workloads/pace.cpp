#include "tests/workloads/pace.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

namespace cgphase::workloads {

using SteadyClock = std::chrono::steady_clock;

Pace::Pace(std::chrono::nanoseconds slot, Late late)
    : slot_(slot), late_(late), next_(SteadyClock::now()) {}

void Pace::wait() {
  std::this_thread::sleep_until(next_);
  next_ += slot_;
  const auto now = SteadyClock::now();
  if (late_ == Late::slip && next_ < now) next_ = now;
}

std::uint64_t slot_count(std::chrono::nanoseconds length) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(length / kSlot, 1));
}

Spread::Spread(std::chrono::nanoseconds length, std::uint64_t units, Pace::Late late)
    : pace_(kSlot, late), units_(units), slots_(slot_count(length)) {}

bool Spread::next(std::uint64_t& begin, std::uint64_t& end) {
  if (slot_ == slots_) return false;
  pace_.wait();
  begin = units_ * slot_ / slots_;
  end = units_ * ++slot_ / slots_;
  return true;
}

double monotonic_seconds() {
  return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace cgphase::workloads
