// Standardisation of feature vectors; the type Scaler itself is a part of the model (model.h).
#pragma once

#include <span>

#include "model/feature_vector.h"
#include "model/model.h"

namespace cgphase {

// Standardised values are clamped to this many standard deviations, in training and in every
// engine: one wild reading cannot drown the history, and 12 fractional bits hold the range in
// an int16 (crbm_fixed.h).
inline constexpr double kStandardisedBound = 32767.0 / 4096.0;

// (x - mean) / scale, clamped, per feature into `out` (same length as the scaler). An absent or
// not finite value becomes 0, which is the training mean. Returns how many were so imputed.
int standardise(const Scaler& scaler, const FeatureVector& vector, std::span<double> out);

// Mean and population standard deviation of the values present, in the order given. A feature
// that never varies, or never was measured, gets scale 1. Vectors must have `features` values.
Scaler fit_scaler(std::span<const FeatureVector> vectors, int features);

}  // namespace cgphase
