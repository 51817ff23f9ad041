#include "policy/baselines/autopilot_policy.h"

#include <algorithm>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kFirstCores = 0.01;
constexpr double kFirstBytes = 1e7;
// Autopilot's times relative to its CPU half-life of 12 h: 48 h, 5 min and 1 h.
constexpr double kMemoryHalfLife = 4;
constexpr double kPeakWindow = 1.0 / 144;
constexpr double kHold = 1.0 / 12;

UsageShapes shapes_of(double cpu_half_life_seconds) {
  return {{kFirstCores, cpu_half_life_seconds},
          {kFirstBytes, kMemoryHalfLife * cpu_half_life_seconds}};
}

void add_load(DecayingHistogram& histogram, double value, double seconds, double time_seconds) {
  histogram.add(value, std::max(value, histogram.shape().first) * seconds, time_seconds);
}

}  // namespace

AutopilotPolicy::AutopilotPolicy(const PolicyArgs& making, double cpu_half_life_seconds)
    : name_(making.name), shapes_(shapes_of(cpu_half_life_seconds)),
      cpu_quantile_(making.values.at("cpu-quantile")),
      memory_quantile_(making.values.at("memory-quantile")),
      margin_(making.values.at("margin")), peak_seconds_(kPeakWindow * cpu_half_life_seconds),
      hold_seconds_(kHold * cpu_half_life_seconds), own_cpu_(shapes_.cpu),
      own_memory_(shapes_.memory), cpu_(shapes_.cpu), memory_(shapes_.memory) {
  const auto* learned = std::get_if<LearnedUsage>(&making.prior);
  if (learned == nullptr) return;
  auto earlier = with_shapes(*learned, name_, shapes_);
  if (!earlier) return;
  cpu_ = std::move(earlier->cpu_cores);
  memory_ = std::move(earlier->memory_bytes);
  earlier_runs_ = earlier->runs;
  taught_cpu_ = cpu_.quantile(cpu_quantile_).has_value();
  taught_memory_ = memory_.quantile(memory_quantile_).has_value();
}

void AutopilotPolicy::observe(const Observation& observation) {
  const double now = seconds_at(observation);
  const double seconds = observation.interval_seconds > 0 ? observation.interval_seconds : 1;
  if (observation.cpu_cores) {
    add_load(own_cpu_, *observation.cpu_cores, seconds, now);
    add_load(cpu_, *observation.cpu_cores, seconds, now);
    cpu_count_ += 1;
  }
  if (observation.memory_need_bytes) observe_memory(*observation.memory_need_bytes, now);
  recommend(now);
}

void AutopilotPolicy::observe_memory(double bytes, double time_seconds) {
  memory_count_ += 1;
  if (peak_ && time_seconds < peak_->end_seconds) {
    peak_->bytes = std::max(peak_->bytes, bytes);
    return;
  }
  if (peak_) {
    add_load(own_memory_, peak_->bytes, 1, peak_->end_seconds);
    add_load(memory_, peak_->bytes, 1, peak_->end_seconds);
  }
  peak_ = Peak{bytes, time_seconds + peak_seconds_};
}

std::optional<double> AutopilotPolicy::memory_quantile() const {
  if (!peak_) return memory_.quantile(memory_quantile_);
  DecayingHistogram all = memory_;
  add_load(all, peak_->bytes, 1, peak_->end_seconds);
  return all.quantile(memory_quantile_);
}

void AutopilotPolicy::recommend(double time_seconds) {
  recommended_cpu_.drop_until(time_seconds - hold_seconds_);
  recommended_memory_.drop_until(time_seconds - hold_seconds_);
  if (taught_cpu_ || cpu_count_ >= kWarmUpSamples)
    if (const auto edge = cpu_.quantile(cpu_quantile_))
      recommended_cpu_.add(time_seconds, *edge * margin_);
  if (taught_memory_ || memory_count_ >= kWarmUpSamples)
    if (const auto edge = memory_quantile())
      recommended_memory_.add(time_seconds, *edge * margin_);
}

Recommendation AutopilotPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  allocation.reason = Reason::window_statistics;
  if (const auto cpu = recommended_cpu_.value())
    allocation.cpu = capped_cores(*cpu, original, host);
  if (const auto memory = recommended_memory_.value())
    allocation.memory = capped_bytes(*memory, original, host);
  allocation.cpu_sample_count = cpu_count_;
  allocation.memory_sample_count = memory_count_;
  allocation.earlier_runs = earlier_runs_;
  return allocation;
}

LearnedState AutopilotPolicy::learned() const {
  if (std::max(cpu_count_, memory_count_) < kWarmUpSamples) return {};
  LearnedUsage usage(name_, shapes_);
  DecayingHistogram memory = own_memory_;
  if (peak_) add_load(memory, peak_->bytes, 1, peak_->end_seconds);
  usage.cpu_cores = own_cpu_.without_times();
  usage.memory_bytes = memory.without_times();
  usage.runs = 1;
  return usage;
}

Result<std::unique_ptr<Policy>> make_autopilot(const PolicyArgs& making) {
  return std::make_unique<AutopilotPolicy>(making, making.values.at("half-life"));
}

Result<std::unique_ptr<Policy>> make_autopilot_tuned(const PolicyArgs& making) {
  const auto& job = making.environment.job_seconds;
  const double half_life =
      job ? making.values.at("jobs") * *job : making.environment.window_seconds;
  return std::make_unique<AutopilotPolicy>(making, bounded_half_life(half_life));
}

}  // namespace cgphase
