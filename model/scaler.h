// Standardises feature vectors. The type Scaler itself is part of the model (model.h).
#pragma once

#include <span>

#include "model/feature_vector.h"
#include "model/model.h"

namespace cgphase {

// Standardised values are clamped to this many standard deviations, in training and in every
// engine. So one outlier cannot dominate the history, and 12 fractional bits fit an int16
// (crbm_fixed.h).
inline constexpr double kStandardisedBound = 32767.0 / 4096.0;

// Writes (x - mean) / scale, clamped, per feature into `out` (same length as the scaler). A value
// that is absent or not finite becomes 0, the training mean. Returns the number of such values.
int standardise(const Scaler& scaler, const FeatureVector& vector, std::span<double> out);

// Mean and population standard deviation of the values that are present, in the given order. A
// feature that never varies, or was never measured, gets scale 1. Vectors must have `features`
// values.
Scaler fit_scaler(std::span<const FeatureVector> vectors, int features);

}  // namespace cgphase
