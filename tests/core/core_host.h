// A host with one container for the core tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "core/core.h"
#include "tests/core/small_model.h"

namespace cgphase::test {


using std::chrono::seconds;

inline constexpr CgroupId kId{1, 42};

inline ContainerInfo container() {
  ContainerInfo info;
  info.id = kId;
  info.path = "/t";
  info.name = "t";
  return info;
}

// A host with one container of 1 core and 1 GiB. The test sets the container's demand. Written
// decisions take effect at once.
class Host {
 public:
  explicit Host(CoreConfig config = quick())
      : core(Core::create(config, small_engine()).value()) {
    sample_.id = kId;
    sample_.limits.cpu_max = CpuMax{Microseconds{100'000}, Microseconds{100'000}};
    sample_.limits.memory_max = MemoryLimit{Bytes{kGiB}};
    sample_.limits.memory_high = MemoryLimit{};
    sample_.cpu = {.usage_usec = 0, .nr_periods = 0, .nr_throttled = 0, .throttled_usec = 0};
    sample_.memory.anon_bytes = 200 * kMiB;
    sample_.memory.file_bytes = 0;
    sample_.memory_current = Bytes{200 * kMiB};
    sample_.memory_events = {.low = 0, .high = 0, .max = 0, .oom = 0, .oom_kill = 0};
    sample_.populated = true;
    tick_.host = {.cpu_cores = 2, .memory = Bytes{4 * kGiB}};
    tick_.time = MonotonicTime(seconds(100));
    tick_.wall_time = WallTime(seconds(1'700'000'000));
    tick_.appeared = {container()};
  }

  static CoreConfig quick() {
    CoreConfig config;
    config.cpu_lever = CpuLever::both;
    config.policy = "hold";
    config.safety.enough_samples = 5;
    return config;
  }

  const std::vector<Decision>& step(double cores, seconds elapsed = seconds(1)) {
    if (started_) {
      tick_.time += elapsed;
      tick_.wall_time += elapsed;
      *sample_.cpu.usage_usec += static_cast<std::uint64_t>(cores * 1e6) *
                                 static_cast<std::uint64_t>(elapsed.count());
      *sample_.cpu.nr_periods += 10;
    }
    tick_.containers = {sample_};
    next.now = tick_.time;
    next.sample = &tick_;
    last = core.step(std::exchange(next, {}));
    const std::vector<Decision>& decisions = last.decisions;
    tick_.appeared.clear();
    started_ = true;
    for (const Decision& decision : decisions) {
      if (decision.verdict != Verdict::allowed || !writes) continue;
      // Both resources may change in one tick; each decision carries its own.
      if (decision.resource == Resource::cpu) sample_.limits.cpu_max = decision.new_limits.cpu_max;
      else if (decision.resource == Resource::cpu_weight)
        sample_.limits.cpu_weight = decision.new_limits.cpu_weight;
      else if (decision.resource == Resource::freeze)
        sample_.limits.frozen = sample_.frozen = decision.new_limits.frozen;
      else sample_.limits.memory_high = decision.new_limits.memory_high;
      (void)core.step({.now = tick_.time, .writes = {{decision.decision_id, WriteEnd::done,
                                                           sample_.limits, {}}}});
      if (decision.direction == Direction::lower) lowered = true;
    }
    return last.decisions;
  }
  void vanish() {
    tick_.time += seconds(1);
    tick_.vanished = {kId};
    tick_.containers.clear();
    (void)core.step(tick_);
  }
  void appear(const ContainerInfo& info) {
    tick_.vanished.clear();
    tick_.appeared = {info};
    sample_.limits.memory_max = MemoryLimit{Bytes{kGiB}};
    sample_.limits.memory_high = MemoryLimit{};
    lowered = false;
  }
  void step_alone() {  // without a container
    tick_.time += seconds(1);
    tick_.vanished.clear();
    (void)core.step(tick_);
  }
  void memory_peak(std::optional<Bytes> peak) { sample_.memory_peak = peak; }
  void grant(const AncestorLimits& ancestor_limits) {
    tick_.ancestor_limits = {{kId, ancestor_limits}};
  }
  void need(std::uint64_t bytes) {
    sample_.memory.anon_bytes = bytes;
    sample_.memory_current = Bytes{bytes};
  }
  void cache(std::uint64_t bytes) {
    sample_.memory.active_file_bytes = bytes;
    sample_.memory.file_bytes = bytes;
    sample_.memory_current = Bytes{*sample_.memory.anon_bytes + bytes};
  }
  void freeze() { sample_.frozen = true; }
  void read_late(std::chrono::milliseconds by) { sample_.read_time = tick_.time + seconds(1) + by; }
  void throttle() { ++*sample_.cpu.nr_throttled; }
  void out_of_memory() { ++*sample_.memory_events.oom; }
  bool lowered_memory() const { return sample_.limits.memory_bytes()->value < kGiB; }
  // Somebody else, or systemd, sets these limits.
  void put(const Limits& limits, bool by_systemd) {
    sample_.limits = limits;
    if (by_systemd) sample_.limits_reset = tick_.time;
  }
  const Limits& limits() const { return sample_.limits; }

  // A raise by the fast path to `after`, which the file then has.
  FastRaise raise_fast(const Limits& after) {
    FastRaise raise{.container = kId, .resource = Resource::cpu, .reason = Reason::throttled,
                    .before = {.cpu_max = sample_.limits.cpu_max},
                    .after = {.cpu_max = after.cpu_max}, .time = tick_.time};
    sample_.limits.cpu_max = after.cpu_max;
    return raise;
  }
  MonotonicTime now() const { return tick_.time; }

  Core core;
  TickInput next;       // events that the next step takes with its sample
  TickOutput last;      // of the last step()
  bool lowered = false;
  bool writes = true;   // false: the test writes the decisions

 private:
  Sample sample_;
  NodeSample tick_;
  bool started_ = false;
};


}  // namespace cgphase::test
