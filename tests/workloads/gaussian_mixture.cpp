#include "tests/workloads/gaussian_mixture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "model/scalar_math.h"
#include "model/train/kmeans.h"

namespace cgphase::workloads {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// log(weight * density) of a component at a point.
double log_joint(const GaussianMixture& mixture, std::size_t component,
                 std::span<const double> point) {
  double sum = portable_log(mixture.weight[component]);
  for (std::size_t d = 0; d < point.size(); ++d) {
    const double variance = mixture.variance[component * point.size() + d];
    const double away = point[d] - mixture.mean[component * point.size() + d];
    sum -= (portable_log(2 * std::numbers::pi * variance) + away * away / variance) / 2;
  }
  return sum;
}

// Computes the shares of the components in a point and returns its log-likelihood.
double shares(const GaussianMixture& mixture, std::span<const double> point,
              std::span<double> share) {
  for (std::size_t k = 0; k < share.size(); ++k) share[k] = log_joint(mixture, k, point);
  const double most = *std::ranges::max_element(share);
  double sum = 0;
  for (double& value : share) sum += value = portable_exp(value - most);
  for (double& value : share) value /= sum;
  return most + portable_log(sum);
}

// `share` is row-major [n * components]. A component that lost all its points stays where it is.
void maximise(GaussianMixture& mixture, std::span<const double> points,
              std::span<const double> share, double least_variance) {
  const std::size_t dimension = at(mixture.dimension), components = at(mixture.components);
  const std::size_t count = points.size() / dimension;
  for (std::size_t k = 0; k < components; ++k) {
    double weight = 0;
    for (std::size_t i = 0; i < count; ++i) weight += share[i * components + k];
    mixture.weight[k] = std::max(weight, 1e-9) / static_cast<double>(count);
    if (weight < 1e-9) continue;
    for (std::size_t d = 0; d < dimension; ++d) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < count; ++i)
        sum += share[i * components + k] * points[i * dimension + d];
      const double mean = sum / weight;
      for (std::size_t i = 0; i < count; ++i) {
        const double away = points[i * dimension + d] - mean;
        squares += share[i * components + k] * away * away;
      }
      mixture.mean[k * dimension + d] = mean;
      mixture.variance[k * dimension + d] = std::max(squares / weight, least_variance);
    }
  }
}

}  // namespace

int GaussianMixture::component(std::span<const double> point) const {
  int best = 0;
  double most = log_joint(*this, 0, point);
  for (int k = 1; k < components; ++k) {
    const double value = log_joint(*this, at(k), point);
    if (value > most) most = value, best = k;
  }
  return best;
}

GaussianMixture fit_mixture(std::span<const double> points, int dimension,
                            const MixtureOptions& options) {
  KMeansOptions start;
  start.clusters = options.components;
  start.seed = options.seed;
  const KMeansFit clusters = kmeans(points, dimension, start);
  GaussianMixture mixture;
  mixture.components = clusters.centroids.count;
  mixture.dimension = dimension;
  mixture.weight.assign(at(mixture.components), 0);
  mixture.mean = clusters.centroids.values;
  mixture.variance.assign(mixture.mean.size(), 1);
  const std::size_t count = clusters.labels.size(), components = at(mixture.components);
  std::vector<double> share(count * components, 0);
  for (std::size_t i = 0; i < count; ++i) share[i * components + at(clusters.labels[i])] = 1;
  maximise(mixture, points, share, options.least_variance);
  for (int iteration = 0; iteration < options.max_iterations; ++iteration) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
      sum += shares(mixture, points.subspan(i * at(dimension), at(dimension)),
                    std::span(share).subspan(i * components, components));
    const double before = mixture.log_likelihood;
    mixture.log_likelihood = sum / static_cast<double>(count);
    if (iteration > 0 && mixture.log_likelihood - before < options.tolerance) break;
    maximise(mixture, points, share, options.least_variance);
  }
  return mixture;
}

}  // namespace cgphase::workloads
