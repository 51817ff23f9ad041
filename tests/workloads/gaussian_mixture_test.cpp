#include "tests/workloads/gaussian_mixture.h"

#include <doctest/doctest.h>

#include "model/train/random.h"

using namespace cgphase;
using namespace cgphase::workloads;

TEST_CASE("mixture: one component is the mean and the variance of the points") {
  const std::vector<double> points{1, 10, 3, 10, 5, 16};
  const GaussianMixture mixture = fit_mixture(points, 2, {.components = 1});
  REQUIRE(mixture.components == 1);
  CHECK(mixture.weight[0] == 1);
  CHECK(mixture.mean[0] == doctest::Approx(3));
  CHECK(mixture.mean[1] == doctest::Approx(12));
  CHECK(mixture.variance[0] == doctest::Approx(8.0 / 3));
  CHECK(mixture.variance[1] == doctest::Approx(8));
  // -(log(2 pi 8/3) + log(2 pi 8) + 2) / 2: the mean squared deviations are the variances.
  CHECK(mixture.log_likelihood == doctest::Approx(-4.3680).epsilon(1e-4));
}

TEST_CASE("mixture: two groups far apart are found with their weights") {
  const std::vector<double> points{0, 1, 0, 1, 0, 1, 100, 102};
  const GaussianMixture mixture = fit_mixture(points, 1, {.components = 2});
  const int low = mixture.component(std::vector{0.5});
  const auto k = static_cast<std::size_t>(low);
  CHECK(mixture.weight[k] == doctest::Approx(0.75));
  CHECK(mixture.mean[k] == doctest::Approx(0.5));
  CHECK(mixture.variance[k] == doctest::Approx(0.25));
  CHECK(mixture.mean[1 - k] == doctest::Approx(101));
  CHECK(mixture.variance[1 - k] == doctest::Approx(1));
  CHECK(mixture.component(std::vector{99.0}) != low);
}

TEST_CASE("mixture: a point belongs to the denser component, not to the nearer mean") {
  cgphase::Random random(3);
  std::vector<double> points;
  for (int i = 0; i < 2000; ++i)
    points.push_back(i % 2 ? 0.1 * random.normal() : 5 + 2 * random.normal());
  const GaussianMixture mixture = fit_mixture(points, 1, {.components = 2});
  const int narrow = mixture.component(std::vector{0.0});
  const auto k = static_cast<std::size_t>(narrow);
  CHECK(mixture.component(std::vector{1.5}) != narrow);
  CHECK(mixture.component(std::vector{-1.0}) != narrow);
  CHECK(mixture.mean[1 - k] == doctest::Approx(5).epsilon(0.1));
  CHECK(mixture.variance[k] == doctest::Approx(0.01).epsilon(0.3));
  CHECK(mixture.variance[1 - k] == doctest::Approx(4).epsilon(0.2));
}

TEST_CASE("mixture: equal points keep the least variance") {
  const std::vector<double> points(12, 4.0);
  const GaussianMixture mixture = fit_mixture(points, 1, {.components = 3});
  CHECK(mixture.component(std::vector{4.0}) == 0);
  CHECK(mixture.variance[0] == MixtureOptions{}.least_variance);
}
