#include "policy/phase/histogram.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

using namespace cgphase;

namespace {

constexpr DecayingHistogram::Shape kCores{0.01, 100};

DecayingHistogram one_to_hundred() {
  DecayingHistogram histogram(kCores);
  for (int i = 1; i <= 100; ++i) histogram.add(i, 1, 0);
  return histogram;
}

}  // namespace

TEST_CASE("a quantile is never below the true one and at most 5 % above it") {
  const auto histogram = one_to_hundred();
  for (const int percent : {1, 10, 50, 90, 99, 100}) {
    CAPTURE(percent);
    const double quantile = histogram.quantile(percent / 100.0).value();
    CHECK(quantile >= percent);
    CHECK(quantile <= percent * DecayingHistogram::kGrowth);
  }
}

TEST_CASE("each bucket begins at its edge") {
  const auto upper_edge = [](double value) {
    DecayingHistogram histogram({1, 3600});
    histogram.add(value, 1, 0);
    return histogram.quantile(1).value();
  };
  double edge = 1;
  for (int i = 0; i < DecayingHistogram::kMaxBuckets - 1; ++i) {
    CAPTURE(i);
    CHECK(upper_edge(std::nextafter(edge, 0)) == edge);
    CHECK(upper_edge(edge) == edge * DecayingHistogram::kGrowth);
    edge *= DecayingHistogram::kGrowth;
  }
}

TEST_CASE("an empty histogram has no quantile and no peak") {
  CHECK_FALSE(DecayingHistogram(kCores).quantile(0.5).has_value());
  CHECK_FALSE(DecayingHistogram(kCores).peak(0.1).has_value());
}

TEST_CASE("a weight halves with each half-life") {
  DecayingHistogram histogram(kCores);
  histogram.add(1, 8, 0);
  histogram.add(2, 1, 300);
  CHECK(histogram.weight_between(0.9, 1.0) == doctest::Approx(1));
  CHECK(histogram.total_weight() == doctest::Approx(2));
}

TEST_CASE("decay moves the quantile towards recent values") {
  DecayingHistogram histogram(kCores);
  for (int i = 0; i < 100; ++i) histogram.add(8, 1, 0);
  for (int i = 0; i < 10; ++i) histogram.add(1, 1, 1000);
  CHECK(histogram.quantile(0.9).value() <= 1.05);
}

TEST_CASE("moving the reference time changes nothing over very long times") {
  DecayingHistogram histogram(kCores);
  for (int i = 0; i < 1000; ++i) histogram.add(1, 1, i * 1000.0);
  CHECK(histogram.total_weight() == doctest::Approx(1.0 / (1 - 1.0 / 1024)));
  CHECK(histogram.count() == 1000);
}

TEST_CASE("a peak lasts until its weight has decayed") {
  DecayingHistogram histogram(kCores);
  histogram.add(8, 1, 0);
  histogram.add(1, 1, 300);
  CHECK(histogram.peak(0.125).value() >= 8);
  CHECK(histogram.peak(0.126).value() <= 1.05);
}

TEST_CASE("a value above the last bucket counts in the last bucket") {
  DecayingHistogram histogram(kCores);
  histogram.add(1e30, 1, 0);
  CHECK(histogram.quantile(1).value() < 1e30);
  CHECK(histogram.to_json()["weights"][0][0] == DecayingHistogram::kMaxBuckets - 1);
}

TEST_CASE("invalid values and weights are ignored") {
  DecayingHistogram histogram(kCores);
  histogram.add(-1, 1, 0);
  histogram.add(std::numeric_limits<double>::quiet_NaN(), 1, 0);
  histogram.add(std::numeric_limits<double>::infinity(), 1, 0);
  histogram.add(1, 0, 0);
  histogram.add(1, 1, std::numeric_limits<double>::quiet_NaN());
  CHECK(histogram.count() == 0);
}

TEST_CASE("a time before the latest one counts as the latest") {
  DecayingHistogram histogram(kCores);
  histogram.add(1, 1, 1000);
  histogram.add(1, 1, 0);
  CHECK(histogram.total_weight() == doctest::Approx(2));
}

TEST_CASE("merging adds scaled weights as if both ended at the same time") {
  DecayingHistogram old(kCores), recent(kCores);
  old.add(1, 4, 0);
  recent.add(2, 1, 12345);
  recent.merge(old, 0.5);
  CHECK(recent.total_weight() == doctest::Approx(3));
  CHECK(recent.weight_between(0.9, 1.0) == doctest::Approx(2));
}

TEST_CASE("JSON preserves quantiles, weights and count") {
  auto histogram = one_to_hundred();
  histogram.add(7, 3, 250);
  const auto read = DecayingHistogram::from_json(histogram.to_json(), kCores);
  REQUIRE(read.has_value());
  CHECK(read->quantile(0.5) == histogram.quantile(0.5));
  CHECK(read->total_weight() == doctest::Approx(histogram.total_weight()));
  CHECK(read->count() == 101);
  CHECK(read->to_json() == histogram.to_json());
}

TEST_CASE("malformed JSON is refused as invalid") {
  const auto good = one_to_hundred().to_json();
  REQUIRE(DecayingHistogram::from_json(good, kCores).has_value());
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json bad = good;
    bad[key] = value;
    const auto read = DecayingHistogram::from_json(bad, kCores);
    return !read && read.error().kind == ErrorKind::invalid;
  };
  CHECK(refused("first", 0.02));
  CHECK(refused("half_life_seconds", "100"));
  CHECK(refused("count", -1));
  CHECK(refused("count", nullptr));
  CHECK(refused("weights", 3));
  CHECK(refused("weights", {{0, 1}, {0, 1}}));
  CHECK(refused("weights", {{5, 1}, {4, 1}}));
  CHECK(refused("weights", {{0, -1}}));
  CHECK(refused("weights", {{0, 1e19}}));
  CHECK(refused("weights", {{0.5, 1}}));
  CHECK(refused("weights", nlohmann::json::array({nlohmann::json::array({1})})));
  CHECK_FALSE(DecayingHistogram::from_json(nullptr, kCores).has_value());
  CHECK_FALSE(DecayingHistogram::from_json(nlohmann::json::array(), kCores).has_value());
}

TEST_CASE("the last bucket is accepted, one beyond it is refused") {
  const auto with_bucket = [](int bucket) {
    auto json = DecayingHistogram(kCores).to_json();
    json["weights"].push_back({bucket, 1.0});
    return DecayingHistogram::from_json(json, kCores).has_value();
  };
  CHECK(with_bucket(DecayingHistogram::kMaxBuckets - 1));
  CHECK_FALSE(with_bucket(DecayingHistogram::kMaxBuckets));
}
