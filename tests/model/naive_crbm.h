// The slow, obviously right engine to which the others are compared: loops over doubles as the
// formulas are written, in C order, with libm.
#pragma once

#include <cmath>
#include <vector>

#include "model/model.h"

namespace cgphase::naive {

// `visible` and `history` as in docs/internals/model-file.md: history is time-major, oldest first.
inline std::vector<double> hidden(const CrbmParameters& crbm, const std::vector<double>& visible,
                                  const std::vector<double>& history) {
  const auto n_vis = static_cast<std::size_t>(crbm.n_vis);
  std::vector<double> activation;
  for (std::size_t k = 0; k < static_cast<std::size_t>(crbm.n_hid); ++k) {
    double sum = crbm.hidden_bias[k];
    for (std::size_t i = 0; i < n_vis; ++i) sum += crbm.w[k * n_vis + i] * visible[i];
    for (std::size_t i = 0; i < history.size(); ++i)
      sum += crbm.b[k * history.size() + i] * history[i];
    activation.push_back(1 / (1 + std::exp(-sum)));
  }
  return activation;
}

inline std::vector<double> reconstruct(const CrbmParameters& crbm,
                                       const std::vector<double>& activation,
                                       const std::vector<double>& history) {
  const auto n_vis = static_cast<std::size_t>(crbm.n_vis);
  std::vector<double> visible;
  for (std::size_t i = 0; i < n_vis; ++i) {
    double sum = crbm.visible_bias[i];
    for (std::size_t k = 0; k < activation.size(); ++k)
      sum += crbm.w[k * n_vis + i] * activation[k];
    for (std::size_t j = 0; j < history.size(); ++j)
      sum += crbm.a[i * history.size() + j] * history[j];
    visible.push_back(sum);
  }
  return visible;
}

struct Nearest {
  std::size_t index = 0;
  double distance = 0, margin = 0;
};

inline Nearest nearest(const Centroids& centroids, const std::vector<double>& point) {
  std::vector<double> distances;
  for (std::size_t j = 0; j < static_cast<std::size_t>(centroids.count); ++j) {
    double sum = 0;
    for (std::size_t k = 0; k < point.size(); ++k) {
      const double difference = point[k] - centroids.values[j * point.size() + k];
      sum += difference * difference;
    }
    distances.push_back(sum);
  }
  Nearest best;
  for (std::size_t j = 1; j < distances.size(); ++j)
    if (distances[j] < distances[best.index]) best.index = j;
  best.distance = distances[best.index];
  double second = HUGE_VAL;
  for (std::size_t j = 0; j < distances.size(); ++j)
    if (j != best.index && distances[j] < second) second = distances[j];
  best.margin = distances.size() > 1 ? second - best.distance : 0;
  return best;
}

}  // namespace cgphase::naive
