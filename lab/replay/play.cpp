#include "lab/replay/play.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/crc32.h"
#include "core/core.h"
#include "lab/replay/scoring.h"
#include "model/ai4dl.h"
#include "model/trace_phases.h"
#include "policy/ceiling.h"
#include "policy/policy.h"

namespace cgphase {
namespace {

std::shared_ptr<const FutureDemand> future_of(std::span<const DemandPoint> points) {
  auto future = std::make_shared<FutureDemand>();
  for (const DemandPoint& point : points) {
    future->seconds.push_back(point.seconds);
    future->cpu_cores.push_back(point.cpu_cores);
    future->memory_bytes.push_back(point.memory_bytes);
  }
  return future;
}

bool needs_courses(const PolicySpec& policy) {
  return policy.name == "k-segments" || policy.name == "ks-plus";
}

std::shared_ptr<const MemoryCourse> course_of(std::span<const DemandPoint> points) {
  auto course = std::make_shared<MemoryCourse>();
  for (const DemandPoint& point : points) {
    if (!point.memory_bytes) continue;
    course->seconds.push_back(point.seconds - points.front().seconds);
    course->bytes.push_back(*point.memory_bytes);
  }
  return course;
}

PolicyEnvironment surroundings_of(const PlayPlan& plan, std::span<const DemandPoint> points,
                                   double cadence_seconds) {
  PolicyEnvironment around;
  const double step = std::max(plan.settings.step_seconds, cadence_seconds);
  const double model_step = plan.engine ? plan.engine->model().step_seconds : step;
  around.cpu_horizon_seconds = std::max(kReactionSteps * model_step, step);
  around.memory_horizon_seconds = std::max(around.memory_horizon_seconds, step);
  around.window_seconds = plan.settings.window_seconds;
  around.risk = plan.settings.risk;
  if (plan.settings.loop.enabled) around.guard_threshold = plan.settings.loop.guard_threshold;
  around.job_seconds = plan.job_seconds;
  around.phase_statistics = plan.statistics;
  if (plan.contender.policy.name.starts_with("oracle-")) around.future = future_of(points);
  if (needs_courses(plan.contender.policy)) around.earlier_courses = plan.courses;
  return around;
}

// Returns the phase of each row, computed with the served CPU time instead of the recorded one.
class ReplayPhases {
 public:
  ReplayPhases(const PlayPlan& plan, const Execution& execution) : execution_(execution) {
    if (!plan.engine || !sees_phases(plan.contender.policy.name)) return;
    if (plan.compat)
      compat_.emplace(plan.engine->model());
    else
      own_.emplace(plan.engine);
  }

  // `backlog_core_seconds` of the demand so far have not run yet.
  Phase at(std::size_t index, double backlog_core_seconds) {
    const TraceRow& row = execution_.rows[index];
    if (compat_) return compat_->add(row);  // its columns come from the recording
    if (!own_) return {};
    const Counter used = used_.at(row.sample.cpu.usage_usec, backlog_core_seconds);
    if (used == row.sample.cpu.usage_usec) return own_->add(execution_, row);
    TraceRow served = row;
    served.sample.cpu.usage_usec = used;
    return own_->add(execution_, served);
  }

 private:
  static bool sees_phases(std::string_view name) {
    return name == "phase" || name == "proactive" || name.starts_with("ai4dl-");
  }
  const Execution& execution_;
  std::optional<PhaseFollower> own_;
  std::optional<Ai4dlPredictor> compat_;
  ServedUsage used_;
};

Observation observe(const Execution& execution, const DemandPoint& point, std::size_t index,
                    const std::optional<LoopInterval>& cpu, const Phase& phase) {
  Observation observation{.time = execution.rows[index].time,
                          .interval_seconds = point.interval_seconds, .cpu_cores = point.cpu_cores,
                          .memory_need_bytes = point.memory_bytes,
                          .cpu_censored = point.throttled, .cpu_limit_cores = std::nullopt,
                          .phase = phase};
  if (!cpu) return observation;
  observation.cpu_limit_cores = cpu->lowest_limit;
  if (!(cpu->throttled_seconds > 0)) return observation;
  const double later = (cpu->served - cpu->demanded) / point.interval_seconds;
  observation.cpu_cores = std::max(0.0, *point.cpu_cores + later);
  observation.cpu_censored = true;
  return observation;
}

void allocate(const Policy& policy, const PlayPlan& plan, const Execution& execution,
              ResourceScore& cpu, ResourceScore& memory) {
  const Recommendation recommendation = policy.allocate(execution.original, told_host(execution));
  const double factor = 1 + plan.contender.margin;
  if (recommendation.cpu) cpu.set(recommendation.cpu->value * factor);
  if (recommendation.memory) memory.set(static_cast<double>(recommendation.memory->value) * factor);
}

}  // namespace

void keep_limits(double seconds, double cpu, double memory, bool keep, ExecutionResult& result) {
  const double limits[] = {cpu, memory};
  result.crc = crc32c(std::as_bytes(std::span(limits)), result.crc);
  if (!keep) return;
  result.limits.seconds.push_back(seconds);
  result.limits.cpu_cores.push_back(cpu);
  result.limits.memory_bytes.push_back(memory);
}

Result<Played> play(const Execution& execution, const PlayPlan& plan) {
  const double cadence = cadence_of(execution);
  const std::vector<DemandPoint> points = demand_of(execution, cadence);
  auto policy = make_policy(plan.contender.policy, plan.prior,
                            surroundings_of(plan, points, cadence));
  if (!policy) return std::unexpected(policy.error());
  const Limits& original = execution.original;
  const HostCapacity host = told_host(execution);
  ResourceScore cpu(plan.settings, Resource::cpu, cpu_ceiling_cores(original, host), points);
  ResourceScore memory(plan.settings, Resource::memory, memory_ceiling_bytes(original, host),
                       points);
  ReplayPhases phases(plan, execution);
  DecisionGrid grid(plan.settings.step_seconds, cadence);
  Played played{.result = {.id = execution.id, .service = execution.service}, .learned = {},
                .course = nullptr};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto served = cpu.advance(i);
    memory.advance(i);
    const Phase phase = phases.at(i, cpu.backlog());
    (*policy)->observe(observe(execution, points[i], i, served, phase));
    if (grid.due(points[i].seconds)) {
      cpu.decide(i);
      memory.decide(i);
      allocate(**policy, plan, execution, cpu, memory);
    }
    keep_limits(points[i].seconds, cpu.limit(), memory.limit(), plan.keep_limits, played.result);
  }
  played.result.cpu = cpu.sums();
  played.result.memory = memory.sums();
  played.learned = (*policy)->learned();
  if (needs_courses(plan.contender.policy)) played.course = course_of(points);
  return played;
}

}  // namespace cgphase
