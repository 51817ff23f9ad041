#include "policy/baselines/theta_scan_policy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kWarmUpQuantile = 0.95;
constexpr double kMostGrowth = 5;  // times the largest of the last window

double quantile_of(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

ThetaScanPolicy::Forecast::Forecast(const PolicyValues& values)
    : step_seconds_(values.at("step")), margin_(values.at("margin")),
      window_(values.count("window")), past_(values.count("past")),
      settings_{values.at("smoothing")} {}

void ThetaScanPolicy::Forecast::add(double value, double time_seconds) {
  count_ += 1;
  if (!begin_) {
    begin_ = time_seconds;
    highest_ = value;
    return;
  }
  // A step ends with the first sample that is at least one step length after its beginning.
  highest_ = std::max(highest_, value);
  if (time_seconds - *begin_ < step_seconds_) return;
  end_step();
  begin_ = time_seconds;
  highest_ = 0;
}

void ThetaScanPolicy::Forecast::gap() {
  steps_.clear();
  begin_.reset();
  since_forecast_ = 0;
  count_ = 0;
}

void ThetaScanPolicy::Forecast::end_step() {
  steps_.push_back(highest_);
  if (steps_.size() > static_cast<std::size_t>(past_)) steps_.pop_front();
  since_forecast_ += 1;
  if (since_forecast_ < window_ || count_ < kWarmUpSamples) return;
  since_forecast_ = 0;
  wanted_ = margin_ * next_window();
}

double ThetaScanPolicy::Forecast::next_window() const {
  const std::vector<double> past(steps_.begin(), steps_.end());
  const int period = find_period(past, settings_);
  const auto history = static_cast<std::size_t>(std::max(period, window_));
  if (history > past.size() / 2) {
    const std::size_t seen = std::min(history, past.size());
    return quantile_of({past.end() - static_cast<std::ptrdiff_t>(seen), past.end()},
                       kWarmUpQuantile);
  }
  const std::vector<double> forecast = theta_forecast(past, period, window_, settings_);
  const double last_window = *std::max_element(past.end() - window_, past.end());
  return std::min(*std::max_element(forecast.begin(), forecast.end()),
                  kMostGrowth * last_window);
}

ThetaScanPolicy::ThetaScanPolicy(const PolicyValues& values) : cpu_(values), memory_(values) {}

void ThetaScanPolicy::observe(const Observation& observation) {
  const double now = seconds_at(observation);
  if (observation.interval_seconds <= 0) {
    cpu_.gap();
    memory_.gap();
  }
  if (observation.cpu_cores) cpu_.add(*observation.cpu_cores, now);
  if (observation.memory_need_bytes) memory_.add(*observation.memory_need_bytes, now);
}

Recommendation ThetaScanPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  allocation.reason = Reason::window_statistics;
  if (cpu_.wanted()) allocation.cpu = capped_cores(*cpu_.wanted(), original, host);
  if (memory_.wanted()) allocation.memory = capped_bytes(*memory_.wanted(), original, host);
  allocation.cpu_sample_count = cpu_.count();
  allocation.memory_sample_count = memory_.count();
  return allocation;
}

}  // namespace cgphase
