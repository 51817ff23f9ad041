// Bounds of plausible values. A trace value beyond them is treated as absent. Private to traces/.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace cgphase {

// The most processors that Linux supports, and the most physical memory that a processor addresses.
inline constexpr double kMostHostCores = 8192;
inline constexpr double kMostMemoryBytes = 0x1p52;
// A limit at or above this value means no limit. cgroup v1 writes 9223372036854771712.
inline constexpr double kNoLimit = 0x1p62;
// If the host is unknown, use may be this many times the limit. Limits change, and requests are not
// limits.
inline constexpr double kMostTimesLimit = 64;
// Readings at uneven intervals may exceed the capacity of the host by these factors.
inline constexpr double kCpuTolerance = 1.25, kMemoryTolerance = 1.05;
// An interval may be longer than recorded by this much. Timestamps may be whole seconds.
inline constexpr double kWholeSecond = 1, kTickSeconds = 0.02;
// No host transfers more bytes, or counts more events, per second.
inline constexpr double kMostBytesPerSecond = 1e13, kMostEventsPerSecond = 1e10;
inline constexpr double kMostTasks = 4'194'304;  // PID_MAX_LIMIT

// The largest plausible value, and its reason.
struct Bound {
  double most;
  // The reason in a message, such as "above the host's 4 cores": `source`, then `capacity` with
  // `unit` if capacity is not 0.
  std::string_view source;
  double capacity = 0;
  std::string_view unit = {};
};

// Bounds of one row: the capacities of its host, from the row or its execution.
struct RowBounds {
  Bound cores{kMostHostCores, "more than any host has"};
  Bound memory{kMostMemoryBytes, "more than any host has"};
  double jitter_seconds = kTickSeconds;  // the interval may be longer by this
};
// An argument of 0 is unknown.
RowBounds row_bounds(double host_cores, double host_memory, double cpu_limit, double memory_limit);

// Counts the values that were ignored in a file, and remembers the first.
class Impossible {
 public:
  void add(std::string_view column, double value, std::uint64_t line, const Bound& bound);
  // "1 impossible value ignored: cpu.usage.cores 1.7e+09 at line 812, above the host's 4 cores".
  // Empty if no value was ignored.
  std::string note() const;

 private:
  std::uint64_t count_ = 0;
  std::string first_;
};

// Checks one cumulative counter. A value that grew too fast is refused. A later value that
// continues from the refused one is accepted, because the counter did jump.
class CounterGuard {
 public:
  // True if `value` is plausible at time `seconds`. Times must not decrease.
  bool takes(std::uint64_t value, double seconds, double most_per_second, double jitter_seconds);

 private:
  struct Reading {
    std::uint64_t value;
    double seconds;
  };
  // The initial readings: every value continues from taken_, and none from refused_.
  Reading taken_{0, -std::numeric_limits<double>::infinity()};
  Reading refused_{std::numeric_limits<std::uint64_t>::max(), 0};
};

}  // namespace cgphase
