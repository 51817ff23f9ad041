#include "model/scalar_math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/train/random.h"

using namespace cgphase;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// Distance in units in the last place of `expected`.
double ulps(double value, double expected) {
  const double unit = std::nextafter(std::abs(expected), kInfinity) - std::abs(expected);
  return std::abs(value - expected) / unit;
}

}  // namespace

TEST_CASE("portable_exp is within two units of libm") {
  Random random(1);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = 1400 * random.uniform() - 700;
    worst = std::max(worst, ulps(portable_exp(x), std::exp(x)));
  }
  for (double x = -1; x < 1; x += 1e-5) worst = std::max(worst, ulps(portable_exp(x), std::exp(x)));
  CHECK(worst <= 2);
}

TEST_CASE("portable_exp of zero is one") { CHECK(portable_exp(0) == 1); }

TEST_CASE("portable_exp overflows to infinity, underflows to zero and keeps nan") {
  CHECK(portable_exp(710) == kInfinity);
  CHECK(portable_exp(kInfinity) == kInfinity);
  CHECK(std::isfinite(portable_exp(709.7)));
  CHECK(portable_exp(-746) == 0);
  CHECK(portable_exp(-kInfinity) == 0);
  CHECK(portable_exp(-740) > 0);
  CHECK(std::isnan(portable_exp(kNoNumber)));
}

TEST_CASE("portable_log is within two units of libm") {
  Random random(2);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::exp(1400 * random.uniform() - 700);
    worst = std::max(worst, ulps(portable_log(x), std::log(x)));
  }
  for (double x = 0.5; x < 2; x += 1e-5)
    if (x != 1) worst = std::max(worst, ulps(portable_log(x), std::log(x)));
  CHECK(worst <= 2);
}

TEST_CASE("portable_log gives zero for one, minus infinity for zero and nan for negatives") {
  CHECK(portable_log(1) == 0);
  CHECK(portable_log(0) == -kInfinity);
  CHECK(std::isnan(portable_log(-1)));
  CHECK(std::isnan(portable_log(kNoNumber)));
  CHECK(portable_log(kInfinity) == kInfinity);
}

TEST_CASE("portable_log reads subnormal numbers") {
  const double x = std::numeric_limits<double>::denorm_min();
  CHECK(ulps(portable_log(x), std::log(x)) <= 2);
}

TEST_CASE("portable_log1p is within four units of libm, near zero too") {
  Random random(3);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::exp(80 * random.uniform() - 40);
    worst = std::max(worst, ulps(portable_log1p(x), std::log1p(x)));
    if (x < 0.9) worst = std::max(worst, ulps(portable_log1p(-x), std::log1p(-x)));
  }
  CHECK(worst <= 4);
}

TEST_CASE("portable_log1p is right at the edges of its range") {
  CHECK(portable_log1p(0) == 0);
  CHECK(portable_log1p(-1) == -kInfinity);
  CHECK(std::isnan(portable_log1p(-2)));
  CHECK(std::isnan(portable_log1p(kNoNumber)));
  CHECK(portable_log1p(kInfinity) == kInfinity);
}

TEST_CASE("portable_sigmoid agrees with libm to 1e-15 and is symmetric at zero") {
  CHECK(portable_sigmoid(0) == 0.5);
  double worst = 0;
  for (double x = -40; x <= 40; x += 1e-3)
    worst = std::max(worst, std::abs(portable_sigmoid(x) - 1 / (1 + std::exp(-x))));
  CHECK(worst < 1e-15);
  CHECK(portable_sigmoid(-1000) >= 0);
  CHECK(portable_sigmoid(1000) == 1);
}

TEST_CASE("portable_sigmoids gives the bits of portable_sigmoid for any count") {
  Random random(4);
  for (int count = 0; count <= 37; ++count)
    for (int round = 0; round < 200; ++round) {
      std::vector<double> values, expected;
      for (int i = 0; i < count; ++i) values.push_back(random.normal() * std::exp2(i % 14 - 4));
      for (const double value : values) expected.push_back(portable_sigmoid(value));
      portable_sigmoids(values.data(), count);
      REQUIRE(values == expected);
    }
}

TEST_CASE("portable_sigmoids is right at the edges of its range") {
  const double tiny = std::numeric_limits<double>::denorm_min();
  std::vector<double> values;
  for (const double edge : {0.0, tiny, 708.0, 709.782712893384, 709.8, 745.1, 745.2, 745.3, 1e300,
                            kInfinity})
    for (const double x : {edge, -edge}) values.push_back(x);
  std::vector<double> expected;
  for (const double value : values) expected.push_back(portable_sigmoid(value));
  portable_sigmoids(values.data(), static_cast<int>(values.size()));
  CHECK(values == expected);
  double nan[] = {kNoNumber, 1, -kNoNumber};
  portable_sigmoids(nan, 3);
  CHECK(std::isnan(nan[0]));
  CHECK(nan[1] == portable_sigmoid(1));
  CHECK(std::isnan(nan[2]));
}
