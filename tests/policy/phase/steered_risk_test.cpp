#include "policy/phase/steered_risk.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("a risk starts at the accepted one and does not fall below it") {
  SteeredRisk risk(0.01);
  CHECK(risk.risk() == 0.01);
  risk.add(true);
  CHECK(risk.risk() == 0.01);
}

TEST_CASE("a risk is loosened while no sample is above, and tightened at once when one is") {
  SteeredRisk risk(0.01);
  for (int i = 0; i < 100; ++i) risk.add(false);  // one of 100 was accepted
  const double loose = risk.risk();
  CHECK(loose > 0.04);
  CHECK(loose < 0.05);
  risk.add(true);
  CHECK(risk.risk() < loose / 4);
}

TEST_CASE("a small risk is hardly loosened in a short run") {
  SteeredRisk risk(0.001);
  for (int i = 0; i < 100; ++i) risk.add(false);
  CHECK(risk.risk() < 0.0012);
}

TEST_CASE("a risk stays below the maximum") {
  SteeredRisk risk(0.1);
  for (int i = 0; i < 10'000; ++i) risk.add(false);
  CHECK(risk.risk() == kMostRisk);
}

TEST_CASE("bounds that are too cautious by a factor are exceeded as often as accepted") {
  constexpr double kAccepted = 0.02;
  SteeredRisk risk(kAccepted);
  std::uint64_t state = 1;
  int over = 0;
  constexpr int kSamples = 100'000;
  for (int i = 0; i < kSamples; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const double draw = static_cast<double>(state >> 11) * 0x1p-53;
    const bool is_over = draw < risk.risk() / 5;  // a fifth of the requested risk
    over += is_over ? 1 : 0;
    risk.add(is_over);
  }
  CHECK(over > 0.9 * kAccepted * kSamples);
  CHECK(over < 1.1 * kAccepted * kSamples);
}
