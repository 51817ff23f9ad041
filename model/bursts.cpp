#include "model/bursts.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace cgphase {
namespace {

// Same values as in FeatureExtractor, so that gaps are the same.
constexpr double kBurstGapIntervals = 3;
constexpr double kBurstCadenceWeight = 0.25;

constexpr std::array<std::string_view, kBurstSources> kSourceNames{
    "gpu_utilisation", "gpu_memory_utilisation", "network_transmit", "network_receive"};
constexpr std::array<std::string_view, kBurstNumbers> kNumberNames{
    "idle_seconds", "burst_seconds", "burst_consumption"};

std::optional<double> rate_of(const Counter& now, const Counter& before, double seconds) {
  const Counter grown = growth(now, before);
  if (!grown) return std::nullopt;
  return static_cast<double>(*grown) / seconds;
}

}  // namespace

std::string_view burst_source_name(std::size_t source) { return kSourceNames.at(source); }
std::string_view burst_number_name(std::size_t number) { return kNumberNames.at(number); }

bool has_segments(const RunBursts& run) {
  for (const SeriesBursts& series : run)
    for (const Moments& moments : series.numbers)
      if (moments.count > 0) return true;
  return false;
}

void Moments::add(double value) {
  count += 1;
  const double apart = value - mean;
  mean += apart / count;
  squares += apart * (value - mean);
}

std::optional<double> Moments::deviation() const {
  if (count < 2) return std::nullopt;
  return std::sqrt(squares / (count - 1));
}

void BurstCutter::count(const Segment& segment) {
  const auto number = [&](BurstNumber which) -> Moments& {
    return bursts_.numbers[static_cast<std::size_t>(which)];
  };
  if (!segment.burst) return number(BurstNumber::idle_seconds).add(segment.seconds);
  number(BurstNumber::burst_seconds).add(segment.seconds);
  number(BurstNumber::burst_consumption).add(segment.consumption);
}

void BurstCutter::interrupt() {
  segment_.reset();
  last_.reset();
}

std::optional<bool> BurstCutter::bursting() const {
  if (!segment_) return std::nullopt;
  return segment_->burst;
}

void BurstCutter::add(double value, double seconds) {
  if (!std::isfinite(value) || !(seconds > 0)) return interrupt();
  bursts_.values += 1;
  means_.add(value);
  const std::optional<TwoMeans::Cut> cut = means_.cut();
  const std::optional<double> before = std::exchange(last_, value);
  if (!cut) return segment_.reset();
  const bool burst = cut->is_high(value);
  if (!segment_) {
    // The first burst creates the cut. The value before it shows that the segment begins here.
    segment_ = {.burst = burst, .begin_seen = before && cut->is_high(*before) != burst};
  } else if (segment_->burst != burst) {
    if (segment_->begin_seen) count(*segment_);
    segment_ = {.burst = burst, .begin_seen = true};
  }
  segment_->seconds += seconds;
  segment_->consumption += value * seconds;
}

void BurstMeter::add(const Sample& sample, MonotonicTime time) {
  const double seconds = started_ ? seconds_between(last_time_, time) : 0;
  const bool gap = !started_ || sample.id != id_ || !(seconds > 0) ||
                   (interval_seconds_ > 0 && seconds > kBurstGapIntervals * interval_seconds_);
  if (started_ && seconds > 0) {
    if (!(interval_seconds_ > 0)) interval_seconds_ = seconds;
    interval_seconds_ += kBurstCadenceWeight *
                         (std::min(seconds, 2 * interval_seconds_) - interval_seconds_);
  }
  const NetworkStat &now = sample.network, &before = last_network_;
  const std::array<std::optional<double>, kBurstSources> values{
      sample.gpu.utilisation_ratio, sample.gpu.memory_utilisation_ratio,
      gap ? std::nullopt : rate_of(now.transmit_bytes, before.transmit_bytes, seconds),
      gap ? std::nullopt : rate_of(now.receive_bytes, before.receive_bytes, seconds)};
  for (std::size_t i = 0; i < kBurstSources; ++i) {
    if (gap || !values[i]) cutters_[i].interrupt();
    else cutters_[i].add(*values[i], seconds);
  }
  started_ = true;
  id_ = sample.id;
  last_time_ = time;
  last_network_ = sample.network;
}

RunBursts BurstMeter::bursts() const {
  RunBursts bursts;
  for (std::size_t i = 0; i < kBurstSources; ++i) bursts[i] = cutters_[i].bursts();
  return bursts;
}

nlohmann::json bursts_to_json(const RunBursts& bursts) {
  nlohmann::json out = nlohmann::json::object();
  for (std::size_t i = 0; i < kBurstSources; ++i) {
    nlohmann::json& series = out[std::string(kSourceNames[i])];
    if (!(bursts[i].values > 0)) continue;
    for (std::size_t k = 0; k < kBurstNumbers; ++k) {
      const Moments& moments = bursts[i].numbers[k];
      nlohmann::json& number = series[std::string(kNumberNames[k])];
      number = {{"count", moments.count}, {"mean", nullptr}, {"sd", nullptr}};
      if (moments.count > 0) number["mean"] = moments.mean;
      if (const auto deviation = moments.deviation()) number["sd"] = *deviation;
    }
  }
  return out;
}

}  // namespace cgphase
