#include "lab/replay/oracle.h"

#include <doctest/doctest.h>

#include "model/train/random.h"

using namespace cgphase;

namespace {

using Values = std::vector<std::optional<double>>;

// The definition, computed over all pairs.
Values slowly(const std::vector<double>& seconds, const Values& values, double window) {
  Values maximum(values.size());
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      if (!values[j]) continue;
      const bool first = !maximum[i];
      if (!first && seconds[j] > seconds[i] + window) break;
      if (first || *values[j] > *maximum[i]) maximum[i] = values[j];
    }
  }
  if (!values.empty()) maximum.back() = values.back();
  return maximum;
}

}  // namespace

TEST_CASE("the oracle sees the window ahead and not the sample itself") {
  const std::vector<double> seconds{0, 1, 2, 3, 4};
  const Values values{9, 1, 5, 2, 3};
  CHECK(coming_maximum(seconds, values, 2) == Values{5, 5, 3, 3, 3});
}

TEST_CASE("a window shorter than the cadence still sees the next sample") {
  CHECK(coming_maximum(std::vector<double>{0, 60, 120}, Values{1, 2, 3}, 10) == Values{2, 3, 3});
}

TEST_CASE("absent values do not count") {
  const Values values{1, std::nullopt, 4, std::nullopt};
  CHECK(coming_maximum(std::vector<double>{0, 1, 2, 3}, values, 10) ==
        Values{4, 4, std::nullopt, std::nullopt});
}

TEST_CASE("no samples have no oracle") { CHECK(coming_maximum({}, {}, 1).empty()); }

TEST_CASE("the oracle agrees with its definition") {
  Random random(3);
  for (int run = 0; run < 200; ++run) {
    std::vector<double> seconds;
    Values values;
    double now = 0;
    for (int i = 0; i < 30; ++i) {
      now += 0.5 + static_cast<double>(random.below(4));
      seconds.push_back(now);
      values.push_back(random.below(8) == 0 ? std::optional<double>()
                                            : static_cast<double>(random.below(10)));
    }
    CHECK(coming_maximum(seconds, values, 6) == slowly(seconds, values, 6));
  }
}
