#include "policy/phase/histogram.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

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
  CHECK(histogram.buckets().at(0).index == DecayingHistogram::kMaxBuckets - 1);
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

TEST_CASE("buckets preserve quantiles, weights and count") {
  auto histogram = one_to_hundred();
  histogram.add(7, 3, 250);
  const auto read =
      DecayingHistogram::from_buckets(kCores, histogram.count(), histogram.buckets());
  REQUIRE(read.has_value());
  for (const DecayingHistogram& stored : {*read, histogram.without_times()}) {
    CHECK(stored.quantile(0.5) == histogram.quantile(0.5));
    CHECK(stored.total_weight() == doctest::Approx(histogram.total_weight()));
    CHECK(stored.count() == 101);
  }
}

TEST_CASE("without times the data end at the next add") {
  DecayingHistogram histogram(kCores);
  histogram.add(1, 2, 1'000'000);
  DecayingHistogram stored = histogram.without_times();
  stored.add(1, 1, 5);
  CHECK(stored.total_weight() == doctest::Approx(3));
}

TEST_CASE("another half-life keeps the weights") {
  const DecayingHistogram other = one_to_hundred().with_half_life(7);
  CHECK(other.shape() == DecayingHistogram::Shape{0.01, 7});
  CHECK(other.total_weight() == doctest::Approx(100));
}

TEST_CASE("buckets out of bounds are refused as invalid") {
  using Buckets = std::vector<DecayingHistogram::Bucket>;
  const auto refused = [](double count, const Buckets& buckets) {
    const auto read = DecayingHistogram::from_buckets(kCores, count, buckets);
    return !read && read.error().kind == ErrorKind::invalid;
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(refused(2, {{0, 1}, {DecayingHistogram::kMaxBuckets - 1, 1e18}}));
  CHECK(refused(1, {{DecayingHistogram::kMaxBuckets, 1}}));
  CHECK(refused(1, {{-1, 1}}));
  CHECK(refused(2, {{0, 1}, {0, 1}}));
  CHECK(refused(2, {{5, 1}, {4, 1}}));
  CHECK(refused(1, {{0, -1}}));
  CHECK(refused(1, {{0, 1.1e18}}));
  CHECK(refused(1, {{0, kNan}}));
  CHECK(refused(-1, {{0, 1}}));
  CHECK(refused(kNan, {{0, 1}}));
}

TEST_CASE("a weight that grew too large is out of bounds") {
  DecayingHistogram histogram(kCores);
  histogram.add(1, 1e18, 0);
  CHECK(histogram.check().has_value());
  histogram.add(1, 1e18, 0);
  CHECK_FALSE(histogram.check().has_value());
}
