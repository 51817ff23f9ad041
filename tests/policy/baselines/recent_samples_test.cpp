#include "policy/baselines/recent_samples.h"

#include <doctest/doctest.h>

#include <vector>

using namespace cgphase;

TEST_CASE("a quantile of recent samples is the nearest rank") {
  RecentSamples samples(20);
  for (int i = 1; i <= 20; ++i) samples.add(21 - i);
  CHECK(samples.quantile(0.95) == 19);  // the 19th of 20
  CHECK(samples.quantile(1) == 20);
  CHECK(samples.quantile(0) == 1);
}

TEST_CASE("the sorted copy contains the same samples as the window") {
  RecentSamples samples(30);
  std::vector<double> all;
  for (int i = 0; i < 400; ++i) {
    all.push_back((i * 7919) % 13);  // with many equal values
    samples.add(all.back());
    std::vector<double> window(all.end() - std::min(30, i + 1), all.end());
    std::sort(window.begin(), window.end());
    for (const double share : {0.0, 0.5, 0.9, 0.95, 1.0}) {
      const double rank = std::max(std::ceil(share * static_cast<double>(window.size())), 1.0);
      REQUIRE(samples.quantile(share) == window[static_cast<std::size_t>(rank) - 1]);
    }
  }
}

TEST_CASE("there are at most as many recent samples as the window has") {
  RecentSamples samples(RecentSamples::kMostSamples);
  samples.add(7);
  for (std::size_t i = 1; i < RecentSamples::kMostSamples; ++i) samples.add(1);
  CHECK(samples.quantile(1) == 7);
  samples.add(1);
  CHECK(samples.size() == RecentSamples::kMostSamples);
  CHECK(samples.quantile(1) == 1);
}
