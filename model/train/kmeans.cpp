#include "model/train/kmeans.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "model/centroids.h"
#include "model/train/random.h"

namespace cgphase {
namespace {

class Points {
 public:
  Points(std::span<const double> values, int dimension)
      : values_(values), dimension_(static_cast<std::size_t>(dimension)) {}

  std::size_t count() const { return values_.size() / dimension_; }
  std::size_t dimension() const { return dimension_; }
  std::span<const double> operator[](std::size_t index) const {
    return values_.subspan(index * dimension_, dimension_);
  }
  double mean_variance() const;

 private:
  std::span<const double> values_;
  std::size_t dimension_;
};

double Points::mean_variance() const {
  double total = 0;
  const auto n = static_cast<double>(count());
  for (std::size_t d = 0; d < dimension_; ++d) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < count(); ++i) sum += (*this)[i][d];
    for (std::size_t i = 0; i < count(); ++i)
      squares += ((*this)[i][d] - sum / n) * ((*this)[i][d] - sum / n);
    total += squares / n;
  }
  return total / static_cast<double>(dimension_);
}

std::span<double> centroid(Centroids& centroids, std::size_t index) {
  const auto dimension = static_cast<std::size_t>(centroids.dimension);
  return std::span(centroids.values).subspan(index * dimension, dimension);
}

void append(Centroids& centroids, std::span<const double> point) {
  centroids.values.insert(centroids.values.end(), point.begin(), point.end());
  ++centroids.count;
}

// The index at which the cumulative sum of `weights` exceeds a uniformly drawn fraction of `total`.
std::size_t draw(const std::vector<double>& weights, double total, Random& random) {
  double left = random.uniform() * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return weights.size() - 1;
}

// k-means++: each next centre is a point, drawn with a probability proportional to its squared
// distance to the nearest centre so far.
Centroids seed_centroids(const Points& points, int clusters, Random& random) {
  Centroids centroids;
  centroids.dimension = static_cast<int>(points.dimension());
  append(centroids, points[random.below(points.count())]);
  std::vector<double> distance(points.count(), std::numeric_limits<double>::infinity());
  while (centroids.count < clusters) {
    const auto newest = centroid(centroids, static_cast<std::size_t>(centroids.count - 1));
    double total = 0;
    for (std::size_t i = 0; i < points.count(); ++i) {
      distance[i] = std::min(distance[i], squared_distance(points[i], newest));
      total += distance[i];
    }
    if (!(total > 0)) break;
    append(centroids, points[draw(distance, total, random)]);
  }
  return centroids;
}

// Labels each point; returns the inertia.
double assign(const Points& points, const Centroids& centroids, std::vector<int>& labels,
              std::vector<double>& distances) {
  double inertia = 0;
  for (std::size_t i = 0; i < points.count(); ++i) {
    const NearestCentroid nearest = nearest_centroid(centroids, points[i]);
    labels[i] = nearest.index;
    distances[i] = nearest.distance;
    inertia += nearest.distance;
  }
  return inertia;
}

// Moves each centroid to the mean of its points; returns the squared length of all moves.
double move_to_means(const Points& points, const std::vector<int>& labels,
                     std::vector<double>& distances, Centroids& centroids) {
  Centroids means = centroids;
  std::fill(means.values.begin(), means.values.end(), 0);
  std::vector<double> counts(static_cast<std::size_t>(centroids.count), 0);
  for (std::size_t i = 0; i < points.count(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto mean = centroid(means, label);
    for (std::size_t d = 0; d < mean.size(); ++d) mean[d] += points[i][d];
    counts[label] += 1;
  }
  double shift = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const auto mean = centroid(means, k);
    if (counts[k] > 0) {
      for (double& value : mean) value /= counts[k];
    } else {
      const auto farthest = std::max_element(distances.begin(), distances.end());
      const auto point = points[static_cast<std::size_t>(farthest - distances.begin())];
      std::copy(point.begin(), point.end(), mean.begin());
      *farthest = 0;
    }
    shift += squared_distance(mean, centroid(centroids, k));
  }
  centroids = std::move(means);
  return shift;
}

}  // namespace

KMeansFit lloyd(std::span<const double> values, Centroids start, const KMeansOptions& options) {
  const Points points(values, start.dimension);
  const double tolerance = options.tolerance * points.mean_variance();
  KMeansFit fit;
  fit.centroids = std::move(start);
  fit.labels.resize(points.count());
  std::vector<double> distances(points.count());
  std::vector<int> before;
  for (fit.iterations = 1; fit.iterations <= options.max_iterations; ++fit.iterations) {
    before = fit.labels;
    assign(points, fit.centroids, fit.labels, distances);
    const double shift = move_to_means(points, fit.labels, distances, fit.centroids);
    if (shift <= tolerance || (fit.iterations > 1 && before == fit.labels)) break;
  }
  fit.inertia = assign(points, fit.centroids, fit.labels, distances);
  return fit;
}

KMeansFit kmeans(std::span<const double> values, int dimension, const KMeansOptions& options) {
  CHECK_INVARIANT(dimension > 0 && !values.empty() && options.clusters > 0);
  const Points points(values, dimension);
  Random random(options.seed);
  KMeansFit best;
  for (int restart = 0; restart < options.restarts; ++restart) {
    KMeansFit fit = lloyd(values, seed_centroids(points, options.clusters, random), options);
    if (restart == 0 || fit.inertia < best.inertia) best = std::move(fit);
  }
  return best;
}

std::vector<double> cohesion(std::span<const double> points, int dimension, int most,
                             const KMeansOptions& options) {
  std::vector<double> inertia;
  for (int k = 1; k <= most; ++k) {
    KMeansOptions attempt = options;
    attempt.clusters = k;
    inertia.push_back(kmeans(points, dimension, attempt).inertia);
  }
  return inertia;
}

int elbow(std::span<const double> inertia) {
  const int most = static_cast<int>(inertia.size());
  if (most < 2 || !(inertia.front() > 0)) return 1;
  const double first = inertia.front(), last = inertia.back();
  int best = 2;
  double deepest = -std::numeric_limits<double>::infinity();
  for (int k = 2; k <= most; ++k) {
    const double line = first + (last - first) * (k - 1) / (most - 1);
    const double depth = line - inertia[static_cast<std::size_t>(k - 1)];
    if (depth > deepest) deepest = depth, best = k;
  }
  return best;
}

int clusters_at_elbow(std::span<const double> points, int dimension, int most,
                      const KMeansOptions& options) {
  return elbow(cohesion(points, dimension, most, options));
}

}  // namespace cgphase
