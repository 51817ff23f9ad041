#include "model/feature_extractor.h"

#include <algorithm>

#include "model/scalar_math.h"

namespace cgphase {
namespace {

constexpr double kGapIntervals = 3;
constexpr double kUsecPerSec = 1e6;

std::optional<double> per_second(const std::optional<std::uint64_t>& sum, double seconds) {
  if (!sum) return std::nullopt;
  return static_cast<double>(*sum) / seconds;
}

std::optional<double> log_rate(const std::optional<std::uint64_t>& sum, double seconds) {
  const std::optional<double> rate = per_second(sum, seconds);
  if (!rate) return std::nullopt;
  return portable_log1p(*rate);
}

std::optional<double> ratio(std::optional<double> part, double whole) {
  if (!part || !(whole > 0)) return std::nullopt;
  return *part / whole;
}

std::optional<double> log_ratio(std::optional<double> part, double whole) {
  const std::optional<double> value = ratio(part, whole);
  if (!value) return std::nullopt;
  return portable_log(*value + kLogRatioFloor);
}

double cpu_ceiling(const Limits& original, const HostCapacity& host) {
  const std::optional<Cores> cores = original.cpu_cores();
  return cores ? cores->value : host.cpu_cores;
}

double memory_ceiling(const Limits& original, const HostCapacity& host) {
  return static_cast<double>(original.memory_bytes().value_or(host.memory).value);
}

std::optional<double> as_double(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(bytes->value);
}

}  // namespace

void FeatureExtractor::Advance::begin(const Counter& now) {
  previous = now;
  sum = now ? std::optional<std::uint64_t>(0) : std::nullopt;
}

void FeatureExtractor::Advance::add(const Counter& now) {
  if (!now || !previous || *now < *previous) sum.reset();
  if (sum) *sum += *now - *previous;
  previous = now;
}

FeatureExtractor::FeatureExtractor(const FeatureSchema& schema, double step_seconds)
    : schema_(schema), step_seconds_(step_seconds) {}

bool FeatureExtractor::is_gap(const Sample& sample, double interval_seconds) const {
  if (sample.id != id_ || interval_seconds <= 0) return true;
  return interval_seconds_ > 0 && interval_seconds > kGapIntervals * interval_seconds_;
}

// Follows slowly and never more than to the double, so that one hole is a gap and a lasting change
// of the cadence is learned after a few samples.
void FeatureExtractor::learn_interval(double seconds) {
  constexpr double kWeight = 0.25;
  if (seconds <= 0) return;
  if (interval_seconds_ <= 0) interval_seconds_ = seconds;
  interval_seconds_ += kWeight * (std::min(seconds, 2 * interval_seconds_) - interval_seconds_);
}

void FeatureExtractor::begin_step(const Sample& sample, MonotonicTime time) {
  started_ = true;
  id_ = sample.id;
  step_begin_ = time;
  cpu_usec_.begin(sample.cpu.usage_usec);
  page_faults_.begin(sample.memory.pgfault);
  read_bytes_.begin(sample.io.read_bytes);
  written_bytes_.begin(sample.io.write_bytes);
  need_at_begin_ = memory_need(sample);
}

std::optional<double> FeatureExtractor::value(Feature feature, double seconds, const Sample& sample,
                                              const Limits& original,
                                              const HostCapacity& host) const {
  const std::optional<double> need = as_double(memory_need(sample));
  const std::optional<double> cores = per_second(cpu_usec_.sum, seconds * kUsecPerSec);
  switch (feature) {
    case Feature::cpu_usage_ratio: return ratio(cores, cpu_ceiling(original, host));
    case Feature::memory_need_ratio: return ratio(need, memory_ceiling(original, host));
    case Feature::cpu_usage_log_ratio: return log_ratio(cores, cpu_ceiling(original, host));
    case Feature::memory_need_log_ratio: return log_ratio(need, memory_ceiling(original, host));
    case Feature::memory_growth_per_sec:
      if (!need || !need_at_begin_) return std::nullopt;
      return ratio((*need - static_cast<double>(need_at_begin_->value)) / seconds,
                   memory_ceiling(original, host));
    case Feature::page_fault_log_rate: return log_rate(page_faults_.sum, seconds);
    case Feature::disk_read_log_rate: return log_rate(read_bytes_.sum, seconds);
    case Feature::disk_write_log_rate: return log_rate(written_bytes_.sum, seconds);
    case Feature::column: return std::nullopt;
  }
  return std::nullopt;
}

FeatureExtractor::Step FeatureExtractor::add(const Sample& sample, MonotonicTime time,
                                             const Limits& original, const HostCapacity& host) {
  Step step;
  if (!started_) {
    begin_step(sample, time);
    last_time_ = time;
    return step;
  }
  const double interval = seconds_between(last_time_, time);
  step.gap = is_gap(sample, interval);
  learn_interval(interval);
  last_time_ = time;
  if (step.gap) {
    begin_step(sample, time);
    return step;
  }
  cpu_usec_.add(sample.cpu.usage_usec);
  page_faults_.add(sample.memory.pgfault);
  read_bytes_.add(sample.io.read_bytes);
  written_bytes_.add(sample.io.write_bytes);
  const double seconds = seconds_between(step_begin_, time);
  if (seconds + interval / 2 < step_seconds_) return step;
  step.vector.emplace();
  for (const FeatureSchema::Entry& entry : schema_.entries)
    step.vector->values.push_back(value(entry.feature, seconds, sample, original, host));
  begin_step(sample, time);
  return step;
}

}  // namespace cgphase
