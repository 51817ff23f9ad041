#include "model/train/kmeans.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "model/train/random.h"
#include "tests/model/test_data.h"

using namespace cgphase;
using nlohmann::json;

namespace {

// `count` points around each centre (row-major, two dimensions).
std::vector<double> clouds(const std::vector<double>& centres, int count, double deviation) {
  Random random(5);
  std::vector<double> points;
  for (int i = 0; i < count; ++i)
    for (const double coordinate : centres)
      points.push_back(coordinate + deviation * random.normal());
  return points;
}

}  // namespace

TEST_CASE("k-means finds well separated clouds") {
  const std::vector<double> centres{0, 0, 1, 0, 0, 1};
  KMeansOptions options;
  options.clusters = 3;
  const KMeansFit fit = kmeans(clouds(centres, 100, 0.02), 2, options);
  REQUIRE(fit.centroids.count == 3);
  std::vector<int> counts(3, 0);
  for (const int label : fit.labels) ++counts[static_cast<std::size_t>(label)];
  CHECK(counts == std::vector<int>{100, 100, 100});
  CHECK(fit.inertia == doctest::Approx(300 * 2 * 0.02 * 0.02).epsilon(0.2));
}

TEST_CASE("the elbow is at the number of clouds") {
  CHECK(clusters_at_elbow(clouds({0, 0, 1, 0, 0, 1}, 50, 0.02), 2, 10, {}) == 3);
  const std::vector<double> pentagon{1, 0, 0.31, 0.95, -0.81, 0.59, -0.81, -0.59, 0.31, -0.95};
  CHECK(clusters_at_elbow(clouds(pentagon, 50, 0.02), 2, 10, {}) == 5);
}

TEST_CASE("cohesion starts with the squared distances to the mean and falls") {
  const std::vector<double> within = cohesion(std::vector<double>{0, 1, 5, 6}, 1, 4, {});
  REQUIRE(within.size() == 4);
  CHECK(within[0] == doctest::Approx(26));
  CHECK(within[1] == doctest::Approx(1));
  CHECK(within[2] == doctest::Approx(0.5));
  CHECK(within[3] == doctest::Approx(0));
  CHECK(elbow(within) == 2);
}

TEST_CASE("equal points make one cluster for any requested number") {
  const std::vector<double> points(40, 0.5);
  CHECK(kmeans(points, 2, {}).centroids.count == 1);
  CHECK(clusters_at_elbow(points, 2, 10, {}) == 1);
}

TEST_CASE("more clusters than distinct points give only as many as points") {
  const std::vector<double> points{0, 0, 1, 1, 0, 1};
  KMeansOptions options;
  options.clusters = 5;
  const KMeansFit fit = kmeans(points, 1, options);
  CHECK(fit.centroids.count == 2);
  CHECK(fit.inertia == 0);
}

TEST_CASE("a start with an empty cluster still uses all clusters") {
  const std::vector<double> points{0, 0.1, 5, 5.1};
  KMeansOptions options;
  const KMeansFit fit = lloyd(points, Centroids{2, 1, {2, 1000}}, options);
  CHECK(fit.labels[0] == fit.labels[1]);
  CHECK(fit.labels[2] == fit.labels[3]);
  CHECK(fit.labels[0] != fit.labels[2]);
}

TEST_CASE("the same seed gives the same clusters") {
  const std::vector<double> points = clouds({0, 0, 1, 0}, 50, 0.5);
  CHECK(kmeans(points, 2, {}).centroids.values == kmeans(points, 2, {}).centroids.values);
}

TEST_CASE("Lloyd's iteration from a given start agrees with the published vector") {
  const std::string path = test_data("ai4dl/kmeans_vector.json");
  if (path.empty()) return;
  const Result<std::string> text = read_file(path, 1U << 20);
  REQUIRE(text);
  const json vector = json::parse(*text);
  std::vector<double> points;
  for (const json& row : vector["X"])
    for (const json& value : row) points.push_back(value.get<double>());
  Centroids start{5, 10, {}};
  for (const json& row : vector["init"])
    for (const json& value : row) start.values.push_back(value.get<double>());
  KMeansOptions options;
  options.tolerance = 0;
  const KMeansFit fit = lloyd(points, start, options);
  CHECK(fit.labels == vector["labels"].get<std::vector<int>>());
  CHECK(fit.inertia == doctest::Approx(vector["inertia"].get<double>()).epsilon(1e-9));
}
