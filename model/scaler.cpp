#include "model/scaler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cgphase {
namespace {

// A deviation below this fraction of the mean is rounding, not behaviour.
constexpr double kNoiseRatio = 1e-12;

bool usable(const std::optional<double>& value) { return value && std::isfinite(*value); }

}  // namespace

int standardise(const Scaler& scaler, const FeatureVector& vector, std::span<double> out) {
  CHECK_INVARIANT(vector.values.size() == out.size() && scaler.mean.size() == out.size());
  int imputed = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!usable(vector.values[i])) {
      out[i] = 0;
      ++imputed;
      continue;
    }
    const double standard = (*vector.values[i] - scaler.mean[i]) / scaler.scale[i];
    out[i] = std::clamp(standard, -kStandardisedBound, kStandardisedBound);
  }
  return imputed;
}

Scaler fit_scaler(std::span<const FeatureVector> vectors, int features) {
  Scaler scaler;
  for (std::size_t i = 0; i < static_cast<std::size_t>(features); ++i) {
    double count = 0, sum = 0, squares = 0;
    for (const FeatureVector& vector : vectors)
      if (usable(vector.values[i])) count += 1, sum += *vector.values[i];
    const double mean = count > 0 ? sum / count : 0;
    for (const FeatureVector& vector : vectors)
      if (usable(vector.values[i]))
        squares += (*vector.values[i] - mean) * (*vector.values[i] - mean);
    const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
    scaler.mean.push_back(mean);
    scaler.scale.push_back(deviation > kNoiseRatio * std::abs(mean) ? deviation : 1);
  }
  return scaler;
}

}  // namespace cgphase
