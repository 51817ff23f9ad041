// What no machine can measure: values of a trace that are taken for absent. Private to model/.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace cgphase {

// Linux runs on at most so many processors; no processor addresses more physical memory.
inline constexpr double kMostHostCores = 8192;
inline constexpr double kMostMemoryBytes = 0x1p52;
// A limit at or above this is none: cgroup v1's "unlimited" is 9223372036854771712.
inline constexpr double kNoLimit = 0x1p62;
// Where the host is unknown, use may be so many times the limit: limits change, and requests are
// no limits.
inline constexpr double kMostTimesLimit = 64;
// Use above the host's capacity that comes of reading at uneven intervals.
inline constexpr double kCpuTolerance = 1.25, kMemoryTolerance = 1.05;
// By how much an interval may be longer than it says: timestamps may be whole seconds.
inline constexpr double kWholeSecond = 1, kTickSeconds = 0.02;
// No host moves more bytes, or counts more events, in a second.
inline constexpr double kMostBytesPerSecond = 1e13, kMostEventsPerSecond = 1e10;
inline constexpr double kMostTasks = 4'194'304;  // PID_MAX_LIMIT

// The largest value that can be true, and why.
struct Bound {
  double most;
  // "above the host's 4 cores": `source` and where it is not 0 `capacity` with its `unit`.
  std::string_view source;
  double capacity = 0;
  std::string_view unit = {};
};

// What one host can do: a row's own capacities, where it or its execution has them.
struct RowBounds {
  Bound cores{kMostHostCores, "more than any host has"};
  Bound memory{kMostMemoryBytes, "more than any host has"};
  double jitter_seconds = kTickSeconds;  // by which the interval may be longer
};
// Zero is unknown.
RowBounds row_bounds(double host_cores, double host_memory, double cpu_limit, double memory_limit);

// Counts what was ignored in a file, and remembers the first.
class Impossible {
 public:
  void add(std::string_view column, double value, std::uint64_t line, const Bound& bound);
  // "1 impossible value ignored: cpu.usage.cores 1.7e+09 at line 812, above the host's 4 cores";
  // empty where there was none.
  std::string note() const;

 private:
  std::uint64_t count_ = 0;
  std::string first_;
};

// Follows one cumulative counter. A value that it cannot have reached is not taken; one that goes
// on from there is, for then the counter did jump.
class CounterGuard {
 public:
  // Whether `value` can be true at `seconds`, which do not fall.
  bool takes(std::uint64_t value, double seconds, double most_per_second, double jitter_seconds);

 private:
  struct Reading {
    std::uint64_t value;
    double seconds;
  };
  // At first any value goes on from the one, and none from the other.
  Reading taken_{0, -std::numeric_limits<double>::infinity()};
  Reading refused_{std::numeric_limits<std::uint64_t>::max(), 0};
};

}  // namespace cgphase
