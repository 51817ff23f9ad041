// Policies and safety rules against a simulated kernel for an hour. The quota throttles, memory.max
// kills.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "policy/safety/safety_rules.h"

using namespace cgphase;

namespace {

constexpr int kHourSeconds = 3600;
constexpr int kPeriodsPerSecond = 10;
constexpr int kRecognitionDelay = 2;  // seconds until the model detects a new phase
constexpr std::uint32_t kSeed = 11;
constexpr double kGibibyte = static_cast<double>(kGiB);

struct Demand {
  double cores = 0, bytes = 0;
  int phase = 0;
};

// A repeating job: 300 s idle, 30 s ramp (memory grows by 180 MiB/s), 270 s of training.
Demand demand_at(double seconds, double noise) {
  const double round = seconds - 600 * static_cast<int>(seconds / 600);
  if (round < 300) return {0.25 + 0.05 * noise, 0.6 * kGibibyte, 0};
  if (round < 330) {
    const double way = (round - 300) / 30;
    return {1 + 5 * way, (0.6 + 5.4 * way) * kGibibyte, 1};
  }
  return {6 + 0.3 * noise, 6 * kGibibyte, 2};
}

// Cgroup and job in one. CPU demand above the quota is worked off later.
struct Kernel {
  Kernel() {
    sample.id = CgroupId{1, 1};
    sample.cpu = {0, 0, 0, 0, 0, 0};
    sample.memory_events = {0, 0, 0, 0, 0};
    sample.memory.anon_bytes = 0;
    sample.memory.pgmajfault = sample.memory.workingset_refault_file = 0;
    sample.populated = true;
    sample.limits.cpu_max = CpuMax{Microseconds{800'000}, Microseconds{100'000}};
    sample.limits.cpu_max_burst = Microseconds{0};
    sample.limits.memory_max = MemoryLimit{Bytes{16 * kGiB}};
    sample.limits.memory_high = MemoryLimit{};
  }
  void run_period(const Demand& demand) {
    const double quota = sample.limits.cpu_cores().value_or(Cores{16}).value;
    const double wanted = demand.cores + backlog;
    const double used = std::min(wanted, quota);
    backlog = wanted - used;
    most_backlog = std::max(most_backlog, backlog / kPeriodsPerSecond);
    *sample.cpu.usage_usec += static_cast<std::uint64_t>(used * 1e6 / kPeriodsPerSecond);
    *sample.cpu.nr_periods += 1;
    if (backlog > 0) {
      *sample.cpu.nr_throttled += 1;
      *sample.cpu.throttled_usec += static_cast<std::uint64_t>(
          std::min(backlog / wanted, 1.0) * 1e6 / kPeriodsPerSecond);
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(demand.bytes);
    sample.memory.anon_bytes = bytes;
    const auto limit = sample.limits.memory_bytes();
    if (limit && bytes > limit->value) {
      would_oom += 1;
      *sample.memory_events.max += 1;
    }
  }
  Sample sample;
  double backlog = 0, most_backlog = 0;
  int would_oom = 0;
};

struct Report {
  double cpu_share = 0, memory_share = 0;  // relative to static
  int would_oom = 0, writes = 0;
  double throttled_seconds = 0, most_backlog = 0;
};

// The surroundings that the core uses.
PolicyEnvironment environment() {
  PolicyEnvironment around;
  around.guard_threshold = SafetyConfig{}.at_risk_ratio;
  around.cpu_risk_factor = 10;
  return around;
}

struct Loop {
  explicit Loop(const char* name)
      : policy(make_policy(name, {}, environment()).value()),
        safety(SafetyConfig{}, CgroupId{1, 1}) {}

  void second(int now) {
    const Sample before = kernel.sample;
    for (int period = 0; period < kPeriodsPerSecond; ++period) {
      const double seconds = now + static_cast<double>(period) / kPeriodsPerSecond;
      const double noise = static_cast<double>(random() % 2001) / 1000 - 1;
      kernel.run_period(demand_at(seconds, noise));
    }
    report.cpu_share += kernel.sample.limits.cpu_cores()->value / 8 / kHourSeconds;
    report.memory_share += static_cast<double>(kernel.sample.limits.memory_bytes()->value) /
                           (16 * kGibibyte) / kHourSeconds;
    observe(before, now);
    decide(before, now);
  }
  Phase phase_at(int now) const {
    const int seen = std::max(0, now - kRecognitionDelay);
    return {PhaseState::known, demand_at(seen, 0).phase, 0.1, 1};
  }
  void observe(const Sample& before, int now) {
    Observation observation;
    observation.time = MonotonicTime(std::chrono::seconds(now + 1));
    observation.interval_seconds = now == 0 ? 0 : 1;
    observation.cpu_cores =
        static_cast<double>(*kernel.sample.cpu.usage_usec - *before.cpu.usage_usec) / 1e6;
    observation.memory_need_bytes = static_cast<double>(memory_need(kernel.sample)->value);
    observation.cpu_censored = *kernel.sample.cpu.nr_throttled > *before.cpu.nr_throttled;
    observation.cpu_limit_cores = kernel.sample.limits.cpu_cores()->value;
    observation.phase = phase_at(now);
    policy->observe(observation);
  }
  void decide(const Sample& before, int now) {
    SafetyInput input;
    input.time = MonotonicTime(std::chrono::seconds(now + 1));
    input.interval_seconds = now == 0 ? 0 : 1;
    input.sample = &kernel.sample;
    input.previous = now == 0 ? nullptr : &before;
    input.phase = phase_at(now);
    input.mode = Mode::enforce;
    input.original = kernel.sample.limits;
    input.host = kHost;
    const Limits ceiling = now == 0 ? input.original : safety.original();
    for (const Decision& decision :
         safety.step(input, policy->allocate(ceiling, kHost), budget, next_id)) {
      if (decision.verdict != Verdict::allowed) continue;
      Limits& limits = kernel.sample.limits;
      if (decision.resource == Resource::memory)
        limits.memory_high = decision.new_limits.memory_high;
      if (decision.resource == Resource::cpu) limits.cpu_max = decision.new_limits.cpu_max;
      safety.written(decision, WriteEnd::done, limits, input.time);
      report.writes += 1;
    }
  }

  static constexpr HostCapacity kHost{16, Bytes{64 * kGiB}};
  Kernel kernel;
  std::unique_ptr<Policy> policy;
  SafetyRules safety;
  HostBudget budget;
  std::uint64_t next_id = 1;
  std::mt19937 random{kSeed};
  Report report;
};

Report run_hour(const char* policy) {
  Loop loop(policy);
  for (int now = 0; now < kHourSeconds; ++now) loop.second(now);
  loop.report.would_oom = loop.kernel.would_oom;
  loop.report.throttled_seconds =
      static_cast<double>(*loop.kernel.sample.cpu.throttled_usec) / 1e6;
  loop.report.most_backlog = loop.kernel.most_backlog;
  const Report& r = loop.report;
  std::printf("closed loop, seed %u, %-8s cpu %.3f memory %.3f of static, would-OOM %d, "
              "throttled %.2f s, backlog at most %.2f core-s, %d writes\n",
              kSeed, policy, r.cpu_share, r.memory_share, r.would_oom, r.throttled_seconds,
              r.most_backlog, r.writes);
  return loop.report;
}

}  // namespace

TEST_CASE("policy phase with safety rules allocates less than static for an hour, without a "
          "would-be OOM") {
  const Report phase = run_hour("phase");
  CHECK(phase.would_oom == 0);
  CHECK(phase.cpu_share < 0.9);
  CHECK(phase.memory_share < 0.7);
}

TEST_CASE("the safety rules also prevent would-be OOMs under the phase-free controls") {
  CHECK(run_hour("sliding").would_oom == 0);
  CHECK(run_hour("hold").would_oom == 0);
}

TEST_CASE("static changes nothing in an hour") {
  const Report report = run_hour("static");
  CHECK(report.writes == 0);
  CHECK(report.cpu_share == doctest::Approx(1));
}
