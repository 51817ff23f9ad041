#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/core.h"
#include "lab/replay/play.h"
#include "lab/replay/scoring.h"
#include "policy/ceiling.h"
#include "policy/policy.h"

namespace cgphase {
namespace {

constexpr CgroupId kContainer{1, 1};
constexpr double kPeriodUsec = 100'000;

// Simulates the kernel: counters that the closed loop advances, and limits as the files would show
// them.
class SimulatedCgroup {
 public:
  explicit SimulatedCgroup(const Execution& execution) : execution_(execution) {
    limits_ = execution.original;
    if (!limits_.cpu_max) limits_.cpu_max = CpuMax{};
    if (!limits_.memory_max) limits_.memory_max = MemoryLimit{};
    if (!limits_.memory_high) limits_.memory_high = MemoryLimit{};
    original_ = limits_;
  }

  const Limits& limits() const { return limits_; }
  void write(const Limits& limits) { limits_ = limits; }

  // The files after an interval: raises of the guard, and counters.
  void advance(const std::optional<LoopInterval>& cpu, const std::optional<LoopInterval>& memory,
               double cores, double seconds) {
    if (cpu) {
      throttled_usec_ += cpu->throttled_seconds * 1e6;
      throttled_periods_ += std::ceil(cpu->throttled_seconds * 1e6 / kPeriodUsec);
      periods_ += std::ceil(seconds * 1e6 / kPeriodUsec);
      if (cpu->raises > 0) raise_cpu(cores);
    }
    if (!memory) return;
    // The limit is memory.high: the kernel delays and reclaims above it, and kills nothing.
    high_events_ += memory->passed ? 1 : 0;
    if (memory->raises > 0) limits_.memory_high = original_.memory_high;
  }

  Sample sample(std::size_t index, double backlog_core_seconds) {
    Sample sample = execution_.rows[index].sample;
    sample.id = kContainer;
    sample.limits = limits_;
    sample.populated = true;
    const auto whole = [](double value) {
      return static_cast<std::uint64_t>(std::min(value, 9e18));  // fits into 64 bits
    };
    sample.cpu.usage_usec = used_.at(sample.cpu.usage_usec, backlog_core_seconds);
    const auto add = [&](Counter& counter, double value) {
      counter = counter.value_or(0) + whole(value);
    };
    add(sample.cpu.nr_periods, periods_);
    add(sample.cpu.nr_throttled, throttled_periods_);
    add(sample.cpu.throttled_usec, throttled_usec_);
    add(sample.memory_events.high, high_events_);
    const auto limit = limits_.memory_bytes();
    if (limit && sample.memory_current)
      sample.memory_current = std::min(*sample.memory_current, *limit);
    return sample;
  }

 private:
  void raise_cpu(double cores) {
    const auto most = original_.cpu_cores();
    if (most && cores >= most->value)
      limits_.cpu_max = original_.cpu_max;
    else
      limits_.cpu_max->quota = Microseconds{static_cast<std::uint64_t>(
          std::ceil(cores * static_cast<double>(limits_.cpu_max->period.value)))};
  }

  const Execution& execution_;
  Limits limits_, original_;
  ServedUsage used_;
  double throttled_usec_ = 0, throttled_periods_ = 0, periods_ = 0, high_events_ = 0;
};

class SafeRun {
 public:
  SafeRun(const Execution& execution, const PlayPlan& plan, Core core)
      : execution_(execution),
        host_(told_host(execution)),
        plan_(plan),
        cadence_(cadence_of(execution)),
        points_(demand_of(execution, cadence_)),
        core_(std::move(core)),
        kernel_(execution),
        cpu_(plan.settings, Resource::cpu, cpu_ceiling_cores(execution.original, host_),
             points_),
        memory_(plan.settings, Resource::memory,
                memory_ceiling_bytes(execution.original, host_), points_) {
    core_.admit(kContainer, {.mode = Mode::enforce, .prior = plan.prior});
  }

  Played run() {
    Played played{.result = {.id = execution_.id, .service = execution_.service}, .learned = {},
                  .course = nullptr};
    DecisionGrid grid(plan_.settings.step_seconds, cadence_);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      step(i);
      if (grid.due(points_[i].seconds)) {
        cpu_.decide(i);
        memory_.decide(i);
      }
      keep_limits(points_[i].seconds, cpu_.limit(), memory_.limit(), plan_.keep_limits,
                  played.result);
    }
    played.result.cpu = cpu_.sums();
    played.result.memory = memory_.sums();
    played.learned = core_.learned(kContainer);
    return played;
  }

 private:
  void step(std::size_t index) {
    const auto cpu = cpu_.advance(index);
    const auto memory = memory_.advance(index);
    kernel_.advance(cpu, memory, cpu_.limit(), points_[index].interval_seconds);
    const TraceRow& row = execution_.rows[index];
    if (cpu && cpu->raises > 0) tell_raised(Resource::cpu, Reason::throttled, row.time);
    if (memory && memory->raises > 0) tell_raised(Resource::memory, Reason::headroom, row.time);
    NodeSample tick{.time = row.time, .wall_time = row.wall_time, .host = host_,
                    .appeared = {}, .vanished = {}, .containers = {}};
    if (index == 0) tick.appeared.push_back(container());
    tick.containers.push_back(kernel_.sample(index, cpu_.backlog()));
    for (const Decision& decision : core_.step(tick).decisions) {
      if (decision.verdict != Verdict::allowed) continue;
      write(decision);
      (void)core_.step({.now = row.time,
                            .writes = {{decision.decision_id, WriteEnd::done, kernel_.limits(),
                                        {}}}});
    }
  }

  ContainerInfo container() const {
    ContainerInfo info;
    info.id = kContainer;
    info.name = execution_.id;
    info.image = execution_.service;
    return info;
  }

  void tell_raised(Resource resource, Reason reason, MonotonicTime time) {
    (void)core_.step({.fast_raises = {{.container = kContainer, .resource = resource,
                                           .reason = reason, .before = {},
                                           .after = kernel_.limits(), .time = time}}});
  }

  void write(const Decision& decision) {
    Limits limits = kernel_.limits();
    if (decision.resource == Resource::cpu) {
      limits.cpu_max = decision.new_limits.cpu_max;
      limits.cpu_max_burst = decision.new_limits.cpu_max_burst;
      cpu_.set(cpu_ceiling_cores(limits, host_));
    } else {
      limits.memory_high = decision.new_limits.memory_high;
      memory_.set(memory_ceiling_bytes(limits, host_));
    }
    kernel_.write(limits);
  }

  const Execution& execution_;
  HostCapacity host_;
  const PlayPlan& plan_;
  double cadence_;
  std::vector<DemandPoint> points_;
  Core core_;
  SimulatedCgroup kernel_;
  ResourceScore cpu_, memory_;
};

}  // namespace

Result<Played> play_with_rails(const Execution& execution, const PlayPlan& plan) {
  CoreConfig config;
  config.policy = to_string(plan.contender.policy);
  config.risk = plan.settings.risk;
  config.manage_unlimited = true;
  config.cpu_lever = plan.settings.cpu_lever;
  config.safety = plan.settings.rules;
  config.safety.at_risk_ratio = plan.settings.loop.guard_threshold;
  config.interval = std::chrono::nanoseconds(
      static_cast<std::int64_t>(cadence_of(execution) * 1e9));
  Result<Core> core = Core::create(config, plan.engine);
  if (!core) return std::unexpected(core.error());
  return SafeRun(execution, plan, std::move(*core)).run();
}

}  // namespace cgphase
