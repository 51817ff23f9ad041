// Feeds samples to a policy, by default one per second, in a container with four cores and 8 GiB.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "policy/policy.h"

namespace cgphase {

inline constexpr HostCapacity kHost{16, Bytes{64 * kGiB}};
inline constexpr double kMib = 1024.0 * 1024;

inline Limits four_cores_eight_gib() {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{400'000}, Microseconds{100'000}};
  limits.memory_max = MemoryLimit{Bytes{8 * kGiB}};
  return limits;
}

struct PolicyRun {
  explicit PolicyRun(std::string_view spec, const LearnedState& prior = {},
                     const PolicyEnvironment& around = {})
      : policy(make_policy(parse_policy_spec(spec).value(), prior, around).value()) {}

  Observation observation(double interval_seconds) {
    Observation one;
    seconds += interval_seconds;
    one.time = MonotonicTime(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
    one.interval_seconds = interval_seconds;
    return one;
  }
  void feed(double cores, double bytes, int count = 1, double interval_seconds = 1) {
    for (int i = 0; i < count; ++i) {
      Observation one = observation(interval_seconds);
      one.cpu_cores = cores;
      one.memory_need_bytes = bytes;
      policy->observe(one);
    }
  }
  void feed_cpu(double cores, double limit_cores, int count = 1) {
    for (int i = 0; i < count; ++i) {
      Observation one = observation(1);
      one.cpu_cores = cores;
      one.cpu_limit_cores = limit_cores;
      policy->observe(one);
    }
  }
  void feed_memory(double bytes, int count = 1, double interval_seconds = 1) {
    for (int i = 0; i < count; ++i) {
      Observation one = observation(interval_seconds);
      one.memory_need_bytes = bytes;
      policy->observe(one);
    }
  }

  Recommendation allocation() const { return policy->allocate(four_cores_eight_gib(), kHost); }
  double cores() const { return allocation().cpu.value().value; }
  double mib() const {
    return static_cast<double>(allocation().memory.value().value) / kMib;
  }

  std::unique_ptr<Policy> policy;
  double seconds = 0;
};

}  // namespace cgphase
