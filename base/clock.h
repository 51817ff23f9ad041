// All code reads time through a Clock. Intervals use the monotonic clock, dates use the wall clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace cgphase {

// Nanoseconds of CLOCK_MONOTONIC. In replay: nanoseconds since the start of the trace.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
// Nanoseconds since the epoch, UTC.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

constexpr double seconds_between(MonotonicTime from, MonotonicTime to) {
  return std::chrono::duration<double>(to - from).count();
}
// Seconds since the beginning of the monotonic clock.
constexpr double seconds_of(MonotonicTime time) { return seconds_between(MonotonicTime(), time); }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime monotonic_now() const = 0;
  virtual WallTime wall_now() const = 0;
};

// The clocks of the machine. Any thread.
class SystemClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override;
  WallTime wall_now() const override;
};

// For tests and replay. The time changes only in advance(). One thread.
class ManualClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return MonotonicTime(elapsed_); }
  WallTime wall_now() const override { return WallTime(start_ + elapsed_); }
  void advance(std::chrono::nanoseconds by) { elapsed_ += by; }

 private:
  std::chrono::nanoseconds start_ = std::chrono::seconds(1'700'000'000);
  std::chrono::nanoseconds elapsed_{0};
};

}  // namespace cgphase
