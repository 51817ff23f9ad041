// A mixture of Gaussians with diagonal covariances, fitted by expectation maximisation (Dempster,
// Laird and Rubin, JRSS B 39, 1977). It is one of the ways of finding phases that ours is compared
// with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cgphase::workloads {

struct MixtureOptions {
  int components = 6;
  int max_iterations = 200;
  double tolerance = 1e-6;       // stops if the mean log-likelihood rises by less
  double least_variance = 1e-3;  // per dimension; the points are standardised
  std::uint64_t seed = 1;
};

struct GaussianMixture {
  int components = 0, dimension = 0;
  std::vector<double> weight;          // [components], sum 1
  std::vector<double> mean, variance;  // row-major [components * dimension]
  double log_likelihood = 0;           // mean over the fitted points

  // The most likely component of a point; of equal ones the first.
  int component(std::span<const double> point) const;
};

// `points` is row-major [n * dimension], n >= 1. Starts with the clusters of k-means with the same
// seed. Sums are computed in the order of the points.
GaussianMixture fit_mixture(std::span<const double> points, int dimension,
                            const MixtureOptions& options);

}  // namespace cgphase::workloads
