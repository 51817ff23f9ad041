#include "policy/baselines/theta_forecast.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace cgphase {
namespace {

// Without a minimum, a position that is nearly always idle would turn small values into large ones.
constexpr double kLeastRatio = 0.01;
constexpr double kStationaryVariance = 0.01;
constexpr std::size_t kShortestScan = 24;

std::size_t index(int value) { return static_cast<std::size_t>(value); }

// The average of one period around `at`. If the period is even, the two ends count half.
double moving_average(std::span<const double> series, std::size_t at, std::size_t period) {
  const std::size_t half = period / 2;
  double sum = 0;
  for (std::size_t i = at - half; i <= at + half; ++i) sum += series[i];
  if (period % 2 == 0) sum -= (series[at - half] + series[at + half]) / 2;
  return sum / static_cast<double>(period);
}

double slope_of(const std::vector<double>& series) {
  const double n = static_cast<double>(series.size());
  const double middle = (n - 1) / 2;
  double above = 0, below = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double from_middle = static_cast<double>(i) - middle;
    above += from_middle * series[i];
    below += from_middle * from_middle;
  }
  return below > 0 ? above / below : 0;
}

double error_of(std::span<const double> forecast, std::span<const double> truth) {
  double sum = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double size = std::abs(forecast[i]) + std::abs(truth[i]);
    if (size > 0) sum += 2 * std::abs(forecast[i] - truth[i]) / size;
  }
  return sum / static_cast<double>(truth.size());
}

double variance_of(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size());
}

}  // namespace

std::vector<double> seasonal_ratios(std::span<const double> series, int period) {
  if (period < 2) return {1.0};
  const std::size_t length = index(period), half = length / 2;
  CHECK_INVARIANT(series.size() >= 2 * length);
  std::vector<double> ratios(length, 0.0), counts(length, 0.0);
  for (std::size_t at = half; at + half < series.size(); ++at) {
    const double average = moving_average(series, at, length);
    if (!(average > 0)) continue;
    ratios[at % length] += series[at] / average;
    counts[at % length] += 1;
  }
  double sum = 0;
  for (std::size_t i = 0; i < length; ++i) {
    ratios[i] = counts[i] > 0 ? ratios[i] / counts[i] : 1;
    sum += ratios[i];
  }
  const double mean = sum / static_cast<double>(length);
  for (double& ratio : ratios) ratio = std::max(mean > 0 ? ratio / mean : 1, kLeastRatio);
  return ratios;
}

std::vector<double> theta_forecast(std::span<const double> series, int period, int horizon,
                                   const ThetaSettings& settings) {
  CHECK_INVARIANT(!series.empty() && period >= 1);
  const std::vector<double> season = seasonal_ratios(series, period);
  std::vector<double> plain(series.begin(), series.end());
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] /= season[i % season.size()];
  const double alpha = settings.smoothing;
  double level = plain.front(), forgotten = 1 - alpha;  // (1 - alpha)^n in the end
  for (std::size_t i = 1; i < plain.size(); ++i) {
    level = alpha * plain[i] + (1 - alpha) * level;
    forgotten *= 1 - alpha;
  }
  const double half_drift = slope_of(plain) / 2;
  std::vector<double> forecast;
  for (int h = 1; h <= horizon; ++h) {
    const double trend = half_drift * (h - 1 + (1 - forgotten) / alpha);
    const double ratio = season[(plain.size() + index(h) - 1) % season.size()];
    forecast.push_back(std::max((level + trend) * ratio, 0.0));
  }
  return forecast;
}

int find_period(std::span<const double> series, const ThetaSettings& settings) {
  if (series.size() < kShortestScan) return 1;
  const std::size_t tested = series.size() / 8;
  const auto train = series.first(series.size() - tested);
  const auto test = series.last(tested);
  const std::size_t longest = std::min(series.size() / 3, train.size() / 2);
  std::vector<double> errors;
  for (std::size_t period = 1; period < longest; ++period)
    errors.push_back(error_of(
        theta_forecast(train, static_cast<int>(period), static_cast<int>(tested), settings),
        test));
  if (variance_of(errors) < kStationaryVariance) return 1;
  return static_cast<int>(std::min_element(errors.begin(), errors.end()) - errors.begin()) + 1;
}

}  // namespace cgphase
