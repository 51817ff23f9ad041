#include "model/scaler.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>

using namespace cgphase;

namespace {
const double kAbsent = std::numeric_limits<double>::quiet_NaN();
}

TEST_CASE("the scaler has mean and population deviation of the values that are present") {
  const std::vector<FeatureVector> vectors{{{1.0, std::nullopt}}, {{3.0, 5.0}}, {{kAbsent, 7.0}}};
  const Scaler scaler = fit_scaler(vectors, 2);
  CHECK(scaler.mean == std::vector<double>{2, 6});
  CHECK(scaler.scale == std::vector<double>{1, 1});
}

TEST_CASE("a feature that never varies or was never measured gets scale one") {
  const std::vector<FeatureVector> vectors{{{0.1, std::nullopt}}, {{0.1, std::nullopt}}};
  const Scaler scaler = fit_scaler(vectors, 2);
  CHECK(scaler.scale == std::vector<double>{1, 1});
  CHECK(scaler.mean[1] == 0);
}

TEST_CASE("absent, nan and infinite values become the mean and are counted") {
  const Scaler scaler{{10, 10, 10, 10}, {2, 2, 2, 2}};
  std::array<double, 4> out{};
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(standardise(scaler, {{14.0, std::nullopt, kAbsent, infinity}}, out) == 3);
  CHECK(out == std::array<double, 4>{2, 0, 0, 0});
}

TEST_CASE("standardised values are clamped only beyond the bound") {
  const Scaler scaler{{0, 0}, {1, 1}};
  std::array<double, 2> out{};
  standardise(scaler, {{-100.0, 7.5}}, out);
  CHECK(out[0] == -kStandardisedBound);
  CHECK(out[1] == 7.5);
}
