#include "model/feature_extractor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "model/scalar_math.h"

namespace cgphase {
namespace {

constexpr double kGapIntervals = 3;
constexpr double kUsecPerSec = 1e6;

// The index of a counter in a sample.
struct Place {
  enum : std::uint8_t {
    cpu_usec, page_faults, read_bytes, written_bytes,
    wait_usec, voluntary_switches, involuntary_switches,
    received_bytes, sent_bytes, block_latency_usec, block_requests
  };
};

const Counter& counter_at(const Sample& sample, std::uint8_t place) {
  switch (place) {
    case Place::page_faults: return sample.memory.pgfault;
    case Place::read_bytes: return sample.io.read_bytes;
    case Place::written_bytes: return sample.io.write_bytes;
    case Place::wait_usec: return sample.run_queue.wait_usec;
    case Place::voluntary_switches: return sample.run_queue.voluntary_switches;
    case Place::involuntary_switches: return sample.run_queue.involuntary_switches;
    case Place::received_bytes: return sample.network.receive_bytes;
    case Place::sent_bytes: return sample.network.transmit_bytes;
    case Place::block_latency_usec: return sample.block.latency_usec;
    case Place::block_requests: return sample.block.requests;
    default: return sample.cpu.usage_usec;
  }
}

// The counters that a feature is computed from.
std::vector<std::uint8_t> places_of(Feature feature) {
  switch (feature) {
    case Feature::cpu_usage_ratio:
    case Feature::cpu_usage_log_ratio: return {Place::cpu_usec};
    case Feature::page_fault_log_rate: return {Place::page_faults};
    case Feature::disk_read_log_rate: return {Place::read_bytes};
    case Feature::disk_write_log_rate: return {Place::written_bytes};
    case Feature::run_queue_wait_ratio: return {Place::wait_usec, Place::cpu_usec};
    case Feature::voluntary_switch_log_rate: return {Place::voluntary_switches};
    case Feature::involuntary_switch_log_rate: return {Place::involuntary_switches};
    case Feature::network_receive_log_rate: return {Place::received_bytes};
    case Feature::network_transmit_log_rate: return {Place::sent_bytes};
    case Feature::block_latency_log_usec:
      return {Place::block_latency_usec, Place::block_requests};
    default: return {};
  }
}

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

using GrownBy = std::optional<std::uint64_t>;

// part / (part + rest); 0 if both are 0.
std::optional<double> share_of_both(const GrownBy& part, const GrownBy& rest) {
  if (!part || !rest) return std::nullopt;
  if (*part == 0) return 0.0;
  const auto amount = static_cast<double>(*part);
  return amount / (amount + static_cast<double>(*rest));
}

// log1p(sum / count); 0 if nothing was counted.
std::optional<double> log_mean(const GrownBy& sum, const GrownBy& count) {
  if (!sum || !count) return std::nullopt;
  if (*count == 0) return 0.0;
  return portable_log1p(static_cast<double>(*sum) / static_cast<double>(*count));
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

void FeatureExtractor::Integral::add(const std::optional<double>& value, double seconds) {
  if (!value || !std::isfinite(*value)) sum.reset();
  if (sum) *sum += *value * seconds;
}

FeatureExtractor::FeatureExtractor(const FeatureSchema& schema, double step_seconds)
    : step_seconds_(step_seconds) {
  features_.reserve(schema.entries.size());
  followed_.reserve(schema.entries.size());
  for (const FeatureSchema::Entry& entry : schema.entries) {
    features_.push_back(entry.feature);
    for (const std::uint8_t place : places_of(entry.feature)) follow(place);
  }
}

void FeatureExtractor::follow(std::uint8_t place) {
  if (std::ranges::find(followed_, place, &Followed::place) == followed_.end())
    followed_.push_back({place, {}});
}

std::optional<std::uint64_t> FeatureExtractor::sum_of(std::uint8_t place) const {
  return std::ranges::find(followed_, place, &Followed::place)->advance.sum;
}

bool FeatureExtractor::is_gap(const Sample& sample, double interval_seconds) const {
  if (sample.id != id_ || interval_seconds <= 0) return true;
  return interval_seconds_ > 0 && interval_seconds > kGapIntervals * interval_seconds_;
}

// Follows slowly and at most doubles. So one missing sample is a gap, and a lasting change of the
// interval is learned after a few samples.
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
  for (Followed& one : followed_) one.advance.begin(counter_at(sample, one.place));
  gpu_.sum = gpu_memory_.sum = 0;
  need_at_begin_ = memory_need(sample);
}

std::optional<double> FeatureExtractor::value(Feature feature, double seconds, const Sample& sample,
                                              const Limits& original,
                                              const HostCapacity& host) const {
  const auto sum = [&](std::uint8_t place) { return sum_of(place); };
  const auto need_now = [&] { return as_double(memory_need(sample)); };
  const auto cores = [&] { return per_second(sum(Place::cpu_usec), seconds * kUsecPerSec); };
  switch (feature) {
    case Feature::cpu_usage_ratio: return ratio(cores(), cpu_ceiling(original, host));
    case Feature::memory_need_ratio: return ratio(need_now(), memory_ceiling(original, host));
    case Feature::cpu_usage_log_ratio: return log_ratio(cores(), cpu_ceiling(original, host));
    case Feature::memory_need_log_ratio:
      return log_ratio(need_now(), memory_ceiling(original, host));
    case Feature::memory_growth_per_sec: {
      const std::optional<double> need = need_now();
      if (!need || !need_at_begin_) return std::nullopt;
      return ratio((*need - static_cast<double>(need_at_begin_->value)) / seconds,
                   memory_ceiling(original, host));
    }
    case Feature::page_fault_log_rate: return log_rate(sum(Place::page_faults), seconds);
    case Feature::disk_read_log_rate: return log_rate(sum(Place::read_bytes), seconds);
    case Feature::disk_write_log_rate: return log_rate(sum(Place::written_bytes), seconds);
    case Feature::column: return std::nullopt;
    default: return optional_value(feature, seconds);
  }
}

std::optional<double> FeatureExtractor::optional_value(Feature feature, double seconds) const {
  const auto sum = [&](std::uint8_t place) { return sum_of(place); };
  const auto rate = [&](std::uint8_t place) { return log_rate(sum(place), seconds); };
  switch (feature) {
    case Feature::run_queue_wait_ratio:
      return share_of_both(sum(Place::wait_usec), sum(Place::cpu_usec));
    case Feature::voluntary_switch_log_rate: return rate(Place::voluntary_switches);
    case Feature::involuntary_switch_log_rate: return rate(Place::involuntary_switches);
    case Feature::network_receive_log_rate: return rate(Place::received_bytes);
    case Feature::network_transmit_log_rate: return rate(Place::sent_bytes);
    case Feature::block_latency_log_usec:
      return log_mean(sum(Place::block_latency_usec), sum(Place::block_requests));
    case Feature::gpu_utilisation_ratio: return ratio(gpu_.sum, seconds);
    case Feature::gpu_memory_utilisation_ratio: return ratio(gpu_memory_.sum, seconds);
    default: return std::nullopt;
  }
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
  for (Followed& one : followed_) one.advance.add(counter_at(sample, one.place));
  gpu_.add(sample.gpu.utilisation_ratio, interval);
  gpu_memory_.add(sample.gpu.memory_utilisation_ratio, interval);
  const double seconds = seconds_between(step_begin_, time);
  if (seconds + interval / 2 < step_seconds_) return step;
  step.vector.emplace();
  step.vector->values.reserve(features_.size());
  for (const Feature feature : features_)
    step.vector->values.push_back(value(feature, seconds, sample, original, host));
  begin_step(sample, time);
  return step;
}

}  // namespace cgphase
