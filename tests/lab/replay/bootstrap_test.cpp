#include "lab/replay/bootstrap.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace cgphase;

namespace {

// The mean of these values over the drawn executions.
Statistics mean_of(const std::vector<double>& values) {
  return [values](std::span<const std::size_t> drawn) {
    double sum = 0;
    for (const std::size_t index : drawn) sum += values[index];
    return std::vector<std::optional<double>>{sum / static_cast<double>(drawn.size())};
  };
}

}  // namespace

TEST_CASE("equal values have an interval without width") {
  const auto intervals = bootstrap(5, 1, {}, mean_of({2, 2, 2, 2, 2}));
  CHECK(intervals[0] == Interval{2, 2});
}

TEST_CASE("a quarter of the resamples of two executions are one of them twice") {
  // 0 and 1: the means 0, 0.5 and 1 have shares of a quarter, a half and a quarter. 2.5 % is within
  // the outer ones.
  CHECK(bootstrap(2, 1, {}, mean_of({0, 1}))[0] == Interval{0, 1});
}

TEST_CASE("the interval of a mean is about two standard errors to each side") {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(i % 2);
  const auto interval = bootstrap(100, 1, {.seed = 3, .resamples = 4000}, mean_of(values))[0];
  REQUIRE(interval);
  CHECK(interval->low == doctest::Approx(0.5 - 1.96 * 0.05).epsilon(0.03));
  CHECK(interval->high == doctest::Approx(0.5 + 1.96 * 0.05).epsilon(0.03));
}

TEST_CASE("the same seed gives the same interval, another seed another one") {
  const std::vector<double> values = {1, 5, 2, 8, 3, 9, 4};
  const auto of = [&](std::uint64_t seed) {
    return *bootstrap(7, 1, {seed, 200}, mean_of(values))[0];
  };
  CHECK(of(1) == of(1));
  CHECK_FALSE(of(1) == of(2));
}

TEST_CASE("one execution, or no resamples, gives no interval") {
  CHECK_FALSE(bootstrap(1, 1, {}, mean_of({2}))[0].has_value());
  CHECK_FALSE(bootstrap(3, 1, {1, 0}, mean_of({1, 2, 3}))[0].has_value());
}

TEST_CASE("a statistic that is mostly undefined has no interval") {
  // The first is defined if execution 0 was drawn, the second if it was not.
  const auto drawn = [](std::span<const std::size_t> indices) {
    const bool first = std::ranges::find(indices, std::size_t{0}) != indices.end();
    return std::vector<std::optional<double>>{first ? std::optional(1.0) : std::nullopt,
                                              first ? std::nullopt : std::optional(1.0)};
  };
  const auto intervals = bootstrap(4, 2, {}, drawn);
  CHECK(intervals[0] == Interval{1, 1});  // 68 % of the resamples
  CHECK_FALSE(intervals[1].has_value());  // 32 %
}

TEST_CASE("very many executions get fewer resamples, but at least the minimum") {
  int calls = 0;
  const auto count = [&](std::span<const std::size_t>) {
    ++calls;
    return std::vector<std::optional<double>>{1.0};
  };
  bootstrap(65'536, 1, {1, 1000}, count);
  CHECK(calls == 305);
}
