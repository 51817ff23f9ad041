#include "policy/phase/demand_bound.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace cgphase;

namespace {

constexpr double kRisk = 0.001;

DemandBound steady(bool drifts, int samples, double demand = 2) {
  DemandBound bound(drifts);
  for (int i = 0; i < samples; ++i) bound.add(demand, i == 0 ? 0 : 1);
  return bound;
}

}  // namespace

TEST_CASE("a peak of 2 in 100 samples is widened by 1 / (2 x 100 x sqrt(0.001))") {
  CHECK(widened(2, 100, kRisk) == doctest::Approx(2 * (1 + 1 / (200 * 0.0316227766))));
  CHECK(widened(2, 1e9, kRisk) == doctest::Approx(2));
}

TEST_CASE("nine samples give no bound, ten do") {
  CHECK_FALSE(steady(false, 9).ahead(kRisk).has_value());
  REQUIRE(steady(false, 10).ahead(kRisk).has_value());
  CHECK(steady(false, 10).ahead(kRisk)->next == doctest::Approx(widened(2, 10, kRisk)));
}

TEST_CASE("more samples give a tighter bound") {
  CHECK(steady(false, 960).ahead(kRisk)->next == doctest::Approx(widened(2, 960, kRisk)));
}

TEST_CASE("memory that never changed is bounded by its last value") {
  CHECK(steady(true, 100).ahead(kRisk)->next == doctest::Approx(2));
}

TEST_CASE("the mean and deviation of memory steps bound the next step") {
  DemandBound bound(true);
  double demand = 1000;
  bound.add(demand, 0);
  const auto step = [&](int i) {
    demand += i % 2 == 0 ? 3e-2 : 1e-2;  // mean 0.02, deviation 0.01
    bound.add(demand, 1);
  };
  for (int i = 0; i < 58; ++i) step(i);
  CHECK(bound.ahead(kRisk)->next > 1250);  // too few steps: only the level counts
  for (int i = 58; i < 60; ++i) step(i);
  const auto ahead = bound.ahead(kRisk);
  REQUIRE(ahead.has_value());
  // The largest of 60 steps, 0.03, widened, is below the bound from mean and deviation.
  const double largest = widened(0.03, 60, kRisk);
  CHECK(0.02 + 0.01 * std::sqrt(1 / kRisk - 1) > largest);
  CHECK(ahead->next == doctest::Approx(1001.2 + largest).epsilon(1e-7));
  CHECK(ahead->coming == doctest::Approx(1001.2 + largest).epsilon(1e-7));
  const double loose = 0.49;
  const double next = 0.02 + 0.01 * std::sqrt(1 / loose - 1);
  CHECK(bound.ahead(loose)->next == doctest::Approx(1001.2 + next).epsilon(1e-8));
}

TEST_CASE("the bound is never below the last sample") {
  DemandBound bound(true);
  for (int i = 0; i < 200; ++i) bound.add(200 - i, i == 0 ? 0 : 1);
  CHECK(bound.ahead(kRisk)->next >= 1);
  CHECK(bound.ahead(kRisk)->coming >= bound.ahead(kRisk)->next);
}

TEST_CASE("a gap is not a step") {
  DemandBound bound(true);
  for (int i = 0; i < 100; ++i) bound.add(1, 1);
  bound.add(50, 0);
  CHECK(bound.rise_per_second() == 0);
  CHECK(bound.peak() == 50);
}

TEST_CASE("the steepest rise is per second") {
  DemandBound bound(true);
  bound.add(0, 0);
  bound.add(100, 10);
  CHECK(bound.rise_per_second() == 10);
}

TEST_CASE("a rise between samples a few seconds apart counts as a rise within one second") {
  DemandBound bound(true);
  bound.add(0, 0);
  bound.add(100, DemandBound::kAtOnceSeconds);
  CHECK(bound.rise_per_second() == 100);
  bound.add(600, DemandBound::kAtOnceSeconds + 0.5);
  CHECK(bound.rise_per_second() == 100);
}

TEST_CASE("a smaller risk never gives a lower bound") {
  for (const bool drifts : {false, true}) {
    double before = 0;
    for (const double risk : {0.3, 0.1, 0.03, 0.01, 0.001, 0.0001}) {
      DemandBound bound(drifts);
      for (int i = 0; i < 500; ++i) bound.add(10 + (i * 37) % 11, i == 0 ? 0 : 1);
      CHECK(bound.ahead(risk)->next >= before);
      before = bound.ahead(risk)->next;
    }
  }
}
