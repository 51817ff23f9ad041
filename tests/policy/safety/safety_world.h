// A container and its kernel for the tests of the safety rules. Each tick is one interval, counters
// grow as the fields say, and an allowed decision takes effect before the next tick.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "policy/safety/safety_rules.h"

namespace cgphase {

inline constexpr int kLong = 90;  // ticks after which no start-up rule blocks a healthy container

struct SafetyWorld {
  explicit SafetyWorld(const SafetyConfig& with = {})
      : config(with), safety(with, CgroupId{1, 42}) {
    sample.id = CgroupId{1, 42};
    sample.limits.cpu_max = CpuMax{Microseconds{400'000}, Microseconds{100'000}};
    sample.limits.cpu_max_burst = Microseconds{300'000};
    sample.limits.memory_max = MemoryLimit{Bytes{8 * kGiB}};
    sample.limits.memory_high = MemoryLimit{};
    sample.memory.anon_bytes = kGiB;
    sample.memory.workingset_refault_file = 0;
    sample.memory.workingset_refault_anon = 0;
    sample.memory.pgmajfault = 0;
    sample.memory.pgfault = 0;
    sample.memory.pgscan_direct = 0;
    sample.memory_events = {0, 0, 0, 0, 0};
    sample.cpu = {0, 0, 0, 0, 0, 0};
    sample.populated = true;
    sample.frozen = false;
    original = sample.limits;
    set_pressure(0, 0, 0);
    input.mode = Mode::enforce;
    input.phase = known(0);
    input.host = HostCapacity{16, Bytes{64 * kGiB}};
    recommendation.cpu = Cores{1};
    recommendation.memory = Bytes{2 * kGiB};
    recommendation.cpu_sample_count = recommendation.memory_sample_count = 100;
  }

  static Phase known(int index) { return {PhaseState::known, index, 0.1, 1.0}; }
  static Phase unknown() { return {PhaseState::unknown, 0, 9.0, 1.0}; }

  void set_pressure(double cpu, double memory, double io) {
    sample.cpu_pressure.some.avg10_ratio = cpu;
    sample.memory_pressure.some.avg10_ratio = memory;
    sample.io_pressure.some.avg10_ratio = io;
  }
  void without_psi() {
    sample.cpu_pressure = sample.memory_pressure = sample.io_pressure = {};
  }

  std::vector<Decision> tick() {
    time += interval;
    *sample.cpu.usage_usec += static_cast<std::uint64_t>(cpu_cores * 1e6);
    *sample.cpu.throttled_usec += throttled_usec;
    *sample.cpu.nr_throttled += throttled_periods;
    *sample.memory.workingset_refault_file += refaults;
    *sample.memory.pgmajfault += major_faults;
    input.time = time;
    input.sample = &sample;
    input.previous = previous ? &*previous : nullptr;
    input.sampling_seconds = std::chrono::duration<double>(interval).count();
    input.interval_seconds = previous ? input.sampling_seconds : 0;
    input.original = original;
    auto decisions = safety.step(input, recommendation, budget, next_id);
    previous = sample;
    for (const Decision& decision : decisions) {
      all.push_back(decision);
      if (decision.verdict == Verdict::allowed && apply) write(decision);
    }
    for (Outcome& outcome : safety.take_outcomes()) outcomes.push_back(std::move(outcome));
    return decisions;
  }
  void write(const Decision& decision) {
    if (decision.resource == Resource::memory) {
      sample.limits.memory_max = decision.new_limits.memory_max;
      sample.limits.memory_high = decision.new_limits.memory_high;
    } else if (decision.resource == Resource::cpu_weight) {
      sample.limits.cpu_weight = decision.new_limits.cpu_weight;
    } else if (decision.resource == Resource::freeze) {
      sample.limits.frozen = sample.frozen = decision.new_limits.frozen;
    } else {
      sample.limits.cpu_max = decision.new_limits.cpu_max;
      sample.limits.cpu_max_burst = decision.new_limits.cpu_max_burst;
    }
    safety.written(decision, WriteEnd::done, sample.limits, time);
  }
  void ticks(int count) {
    for (int i = 0; i < count; ++i) tick();
  }

  // Runs until an allowed decision of that kind, at most `count` ticks.
  std::optional<Decision> find(Resource resource, Direction direction, int count) {
    for (int i = 0; i < count; ++i)
      for (const Decision& decision : tick())
        if (decision.resource == resource && decision.direction == direction &&
            decision.verdict == Verdict::allowed)
          return decision;
    return std::nullopt;
  }
  bool lowers(Resource resource, int count) {
    return find(resource, Direction::lower, count).has_value();
  }
  double cores() const { return sample.limits.cpu_cores().value_or(Cores{0}).value; }
  std::uint64_t memory_bytes() const {
    return sample.limits.memory_bytes().value_or(Bytes{0}).value;
  }

  SafetyConfig config;
  SafetyRules safety;
  HostBudget budget;
  std::uint64_t next_id = 1;
  Sample sample;
  std::optional<Sample> previous;
  Limits original;
  SafetyInput input;
  Recommendation recommendation;
  MonotonicTime time{};
  std::chrono::nanoseconds interval = std::chrono::seconds(1);
  bool apply = true;  // allowed decisions are written at once
  double cpu_cores = 0.5;
  std::uint64_t throttled_usec = 0, throttled_periods = 0, refaults = 0, major_faults = 0;
  std::vector<Decision> all;
  std::vector<Outcome> outcomes;
};

// A world in which both limits were lowered and the trials have passed.
inline SafetyWorld lowered_world(const SafetyConfig& config = {}) {
  SafetyWorld world(config);
  world.recommendation.cpu = Cores{2};
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.ticks(40);
  REQUIRE(world.cores() == doctest::Approx(2));
  REQUIRE(world.memory_bytes() < 8 * kGiB);
  world.recommendation.memory = Bytes{world.memory_bytes()};
  return world;
}

}  // namespace cgphase
