#include "model/crbm.h"

#include <doctest/doctest.h>

#include "model/centroids.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"

using namespace cgphase;

namespace {

std::vector<double> past(const std::vector<double>& window, const CrbmParameters& crbm) {
  return {window.begin(), window.end() - crbm.n_vis};
}
std::vector<double> present(const std::vector<double>& window, const CrbmParameters& crbm) {
  return {window.end() - crbm.n_vis, window.end()};
}

}  // namespace

TEST_CASE("hidden activations agree with the naive loop to 1e-14") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    const Model model = random_model(seed);
    Random random(seed + 1000);
    const std::vector<double> window = random_window(random, model.crbm);
    Eigen::VectorXd activation;
    Crbm(model.crbm).hidden(window.data(), activation);
    const std::vector<double> expected =
        naive::hidden(model.crbm, present(window, model.crbm), past(window, model.crbm));
    for (std::size_t k = 0; k < expected.size(); ++k)
      CHECK(activation[static_cast<Eigen::Index>(k)] ==
            doctest::Approx(expected[k]).epsilon(1e-14));
  }
}

TEST_CASE("the reconstruction agrees with the naive loop to 1e-13") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    const Model model = random_model(seed);
    Random random(seed + 1000);
    const std::vector<double> window = random_window(random, model.crbm);
    const Crbm crbm(model.crbm);
    Eigen::VectorXd activation, visible;
    crbm.hidden(window.data(), activation);
    crbm.reconstruct(window.data(), activation, visible);
    const std::vector<double> expected = naive::reconstruct(
        model.crbm, {activation.begin(), activation.end()}, past(window, model.crbm));
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(visible[static_cast<Eigen::Index>(i)] - expected[i]) < 1e-13);
  }
}

TEST_CASE("sums run from the bias over the window in order, independent of SIMD") {
  const Model model = random_model(7, {5, 9, 2, 3});
  Random random(8);
  const std::vector<double> window = random_window(random, model.crbm);
  const Crbm crbm(model.crbm);
  Eigen::VectorXd visible;
  const Eigen::VectorXd silent = Eigen::VectorXd::Zero(9);
  crbm.reconstruct(window.data(), silent, visible);
  for (std::size_t i = 0; i < 5; ++i) {
    double sum = model.crbm.visible_bias[i];
    for (std::size_t j = 0; j < 10; ++j) sum += model.crbm.a[i * 10 + j] * window[j];
    CHECK(visible[static_cast<Eigen::Index>(i)] == sum);
  }
}

TEST_CASE("parameters are unchanged by conversion to the engine and back") {
  const Model model = random_model(3);
  const CrbmParameters back = Crbm(model.crbm).parameters();
  CHECK(back.w == model.crbm.w);
  CHECK(back.a == model.crbm.a);
  CHECK(back.b == model.crbm.b);
  CHECK(back.visible_bias == model.crbm.visible_bias);
  CHECK(back.hidden_bias == model.crbm.hidden_bias);
}

TEST_CASE("the nearest centroid, its distance and margin agree with the naive loop") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const Model model = random_model(seed);
    Random random(seed);
    std::vector<double> point(10);
    for (double& value : point) value = random.uniform();
    const NearestCentroid found = nearest_centroid(model.centroids, point);
    const naive::Nearest expected = naive::nearest(model.centroids, point);
    CHECK(found.index == static_cast<int>(expected.index));
    CHECK(found.distance == expected.distance);
    CHECK(found.margin == expected.margin);
  }
}

TEST_CASE("if two centroids are equally near, the first wins with margin zero") {
  const Centroids centroids{2, 1, {0.25, 0.75}};
  const double point[] = {0.5};
  CHECK(nearest_centroid(centroids, point).index == 0);
  CHECK(nearest_centroid(centroids, point).margin == 0);
}

TEST_CASE("a single centroid has margin zero") {
  const Centroids centroids{1, 1, {0.25}};
  const double point[] = {0.5};
  CHECK(nearest_centroid(centroids, point).margin == 0);
  CHECK(nearest_centroid(centroids, point).distance == 0.0625);
}
