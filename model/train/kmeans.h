// k-means with k-means++ seeding (Arthur and Vassilvitskii, SODA 2007) and Lloyd's iteration.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace cgphase {

struct KMeansOptions {
  int clusters = 5;
  int restarts = 10;
  int max_iterations = 300;
  // Relative to the mean variance of the dimensions, for the squared shift.
  double tolerance = 1e-4;
  std::uint64_t seed = 1;
};

struct KMeansFit {
  Centroids centroids;       // fewer than requested if there are fewer distinct points
  std::vector<int> labels;   // one per point
  double inertia = 0;        // sum of squared distances: SSW, the cohesion
  int iterations = 0;
};

// `points` is row-major [n * dimension], n >= 1. Sums run in the order of the points, so that a
// seed gives the same result everywhere. Of equally good restarts the first wins.
KMeansFit kmeans(std::span<const double> points, int dimension, const KMeansOptions& options);

// Lloyd's iteration from given centroids. A cluster without points takes the point that is farthest
// from its centroid.
KMeansFit lloyd(std::span<const double> points, Centroids start, const KMeansOptions& options);

// Cohesion by the number of clusters: the inertia of the best fit for k = 1..most. The first is the
// sum of squared distances to the mean of all points.
std::vector<double> cohesion(std::span<const double> points, int dimension, int most,
                             const KMeansOptions& options);

// The number of clusters at the elbow of `inertia` (of k = 1, 2, ...): the k whose inertia is
// farthest below the line from the first to the last. At least 2 unless all points are equal.
int elbow(std::span<const double> inertia);

// The elbow of cohesion() over 1..most.
int clusters_at_elbow(std::span<const double> points, int dimension, int most,
                      const KMeansOptions& options);

}  // namespace cgphase
