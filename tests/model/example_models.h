// Makes models and windows for tests from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "model/train/random.h"

namespace cgphase {

struct ExampleSize {
  int features = 6, hidden = 10, history = 3, phases = 5;
};

// Weights have the standard deviation `weight_scale`. Centroids are anywhere in the unit cube.
Model random_model(std::uint64_t seed, const ExampleSize& size = {}, double weight_scale = 0.5);

// Standardised values, normal with the given deviation, clamped as in the scaler.
std::vector<double> random_window(Random& random, const CrbmParameters& crbm, double deviation = 1);

std::vector<std::int16_t> quantized(const std::vector<double>& window);

}  // namespace cgphase
