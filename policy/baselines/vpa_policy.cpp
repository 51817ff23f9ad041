#include "policy/baselines/vpa_policy.h"

#include <algorithm>
#include <cmath>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kVpaFirstCores = 0.01;
constexpr double kVpaFirstBytes = 1e7;
constexpr double kWidening = DecayingHistogram::kGrowth - 1;
constexpr double kLeastWeightCores = 0.1;

UsageShapes vpa_shapes_of(double half_life_seconds) {
  return {VpaHistogram::shape(kVpaFirstCores, half_life_seconds),
          VpaHistogram::shape(kVpaFirstBytes, half_life_seconds)};
}

}  // namespace

DecayingHistogram::Shape VpaHistogram::shape(double first, double half_life_seconds) {
  return {first / kWidening, half_life_seconds};
}

void VpaHistogram::add(double value, double weight, double time_seconds) {
  if (value >= 0) shifted_.add(value + shifted_.shape().first, weight, time_seconds);
}

std::optional<double> VpaHistogram::quantile(double share) const {
  const auto edge = shifted_.quantile(share);
  return edge ? std::optional(*edge - shifted_.shape().first) : std::nullopt;
}

std::optional<VpaMemoryPeaks::Peak> VpaMemoryPeaks::add(double bytes, double time_seconds) {
  std::optional<Peak> ended;
  if (!end_ || time_seconds >= *end_) {
    ended = running();
    const double begin = end_.value_or(time_seconds);
    end_ = begin + (std::floor((time_seconds - begin) / interval_) + 1) * interval_;
    usage_peak_ = bumped_peak_ = 0;
  }
  // As in VPA, use below the bumped peak is ignored.
  if (bytes > std::max(usage_peak_, bumped_peak_)) usage_peak_ = bytes;
  return ended;
}

void VpaMemoryPeaks::bump(double in_force_bytes, double ratio, double least_bytes) {
  // The peak of an earlier bump is left out, because repeated lacks would raise it without end.
  const double used = std::max(in_force_bytes, usage_peak_);
  const double needed = std::max(used * ratio, used + least_bytes);
  if (needed > std::max(usage_peak_, bumped_peak_)) bumped_peak_ = needed;
}

std::optional<VpaMemoryPeaks::Peak> VpaMemoryPeaks::running() const {
  const double peak = std::max(usage_peak_, bumped_peak_);
  if (!end_ || !(peak > 0)) return std::nullopt;
  return Peak{peak, *end_};
}

VpaPolicy::VpaPolicy(const PolicyArgs& making, double half_life_seconds)
    : name_(making.name), shapes_(vpa_shapes_of(half_life_seconds)),
      quantile_(making.values.at("quantile")), margin_(making.values.at("margin")),
      bump_(making.values.at("bump")), bump_bytes_(making.values.at("bump-bytes")),
      peaks_(half_life_seconds), own_cpu_(DecayingHistogram(shapes_.cpu)),
      own_memory_(DecayingHistogram(shapes_.memory)), cpu_(own_cpu_), memory_(own_memory_) {
  const auto* learned = std::get_if<LearnedUsage>(&making.prior);
  if (learned == nullptr) return;
  auto earlier = with_shapes(*learned, name_, shapes_);
  if (!earlier) return;
  cpu_ = VpaHistogram(std::move(earlier->cpu_cores));
  memory_ = VpaHistogram(std::move(earlier->memory_bytes));
  earlier_runs_ = earlier->runs;
  taught_cpu_ = cpu_.quantile(quantile_).has_value();
  taught_memory_ = memory_.quantile(quantile_).has_value();
  recommend_memory();
}

void VpaPolicy::observe(const Observation& observation) {
  if (observation.cpu_cores) observe_cpu(*observation.cpu_cores, observation);
  if (observation.memory_need_bytes)
    observe_memory(*observation.memory_need_bytes, seconds_at(observation));
}

void VpaPolicy::observe_cpu(double cores, const Observation& observation) {
  const double seconds = observation.interval_seconds > 0 ? observation.interval_seconds : 1;
  const double weight =
      std::max(observation.cpu_limit_cores.value_or(0), kLeastWeightCores) * seconds;
  own_cpu_.add(cores, weight, seconds_at(observation));
  cpu_.add(cores, weight, seconds_at(observation));
  cpu_count_ += 1;
}

void VpaPolicy::observe_memory(double bytes, double time_seconds) {
  const bool in_force = taught_memory_ || memory_count_ >= kWarmUpSamples;
  const auto before = peaks_.running();
  const auto ended = peaks_.add(bytes, time_seconds);
  if (ended) {
    own_memory_.add(ended->bytes, 1, ended->time_seconds);
    memory_.add(ended->bytes, 1, ended->time_seconds);
  }
  if (in_force && memory_wanted_ && bytes > *memory_wanted_)
    peaks_.bump(*memory_wanted_, bump_, bump_bytes_);
  memory_count_ += 1;
  const auto now = peaks_.running();
  if (ended || !before || (now && now->bytes != before->bytes)) recommend_memory();
}

void VpaPolicy::recommend_memory() {
  VpaHistogram all = memory_;
  if (const auto peak = peaks_.running()) all.add(peak->bytes, 1, peak->time_seconds);
  if (const auto edge = all.quantile(quantile_)) memory_wanted_ = *edge * margin_;
}

Recommendation VpaPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  allocation.reason = Reason::window_statistics;
  if (taught_cpu_ || cpu_count_ >= kWarmUpSamples)
    if (const auto edge = cpu_.quantile(quantile_))
      allocation.cpu = capped_cores(*edge * margin_, original, host);
  if (memory_wanted_ && (taught_memory_ || memory_count_ >= kWarmUpSamples))
    allocation.memory = capped_bytes(*memory_wanted_, original, host);
  allocation.cpu_sample_count = cpu_count_;
  allocation.memory_sample_count = memory_count_;
  allocation.earlier_runs = earlier_runs_;
  return allocation;
}

LearnedState VpaPolicy::learned() const {
  if (std::max(cpu_count_, memory_count_) < kWarmUpSamples) return {};
  LearnedUsage usage(name_, shapes_);
  VpaHistogram memory = own_memory_;
  if (const auto peak = peaks_.running()) memory.add(peak->bytes, 1, peak->time_seconds);
  usage.cpu_cores = own_cpu_.shifted().without_times();
  usage.memory_bytes = memory.shifted().without_times();
  usage.runs = 1;
  return usage;
}

Result<std::unique_ptr<Policy>> make_vpa(const PolicyArgs& making) {
  return std::make_unique<VpaPolicy>(making, making.values.at("half-life"));
}

Result<std::unique_ptr<Policy>> make_vpa_tuned(const PolicyArgs& making) {
  const auto& job = making.environment.job_seconds;
  const double half_life =
      job ? making.values.at("jobs") * *job : making.environment.window_seconds;
  return std::make_unique<VpaPolicy>(making, bounded_half_life(half_life));
}

}  // namespace cgphase
