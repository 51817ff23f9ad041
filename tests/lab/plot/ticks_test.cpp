#include "lab/plot/ticks.h"

#include <doctest/doctest.h>

#include <limits>

using namespace cgphase;

namespace {

std::string labels(const Ticks& ticks) {
  std::string text;
  for (std::size_t i = 0; i < ticks.values.size(); ++i)
    text += (i > 0 ? " " : "") + ticks.label(i);
  return text;
}

std::string time_labels(double seconds, int most = 8) {
  const TimeTicks time = time_ticks(seconds, most);
  return labels(time.ticks) + " " + time.unit;
}

}  // namespace

TEST_CASE("ticks go up in 1, 2 or 5 times a power of ten") {
  CHECK(labels(value_ticks(4, 4)) == "0 1 2 3 4");
  CHECK(labels(value_ticks(4.1, 4)) == "0 2 4 6");
  CHECK(labels(value_ticks(20, 4)) == "0 5 10 15 20");
  CHECK(labels(value_ticks(900, 4)) == "0 500 1000");
  CHECK(labels(value_ticks(0.8, 4)) == "0.0 0.2 0.4 0.6 0.8");
  CHECK(labels(value_ticks(0.013, 4)) == "0.000 0.005 0.010 0.015");
}

TEST_CASE("the last tick is the first at or above the top, whatever the top") {
  for (double top = 1.3e-9; top < 1e12; top *= 1.37) {
    CAPTURE(top);
    for (const int most : {1, 4, 10}) {
      const Ticks ticks = value_ticks(top, most);
      REQUIRE(ticks.values.size() >= 2);
      CHECK(ticks.values.size() <= static_cast<std::size_t>(most) + 1);
      CHECK(ticks.values.front() == 0);
      CHECK(ticks.top() >= top * (1 - 1e-9));
      CHECK(ticks.values[ticks.values.size() - 2] < top);
    }
  }
}

TEST_CASE("a tick is the double nearest to its label") {
  CHECK(value_ticks(0.8, 4).values[3] == 0.6);
  CHECK(value_ticks(0.3, 3).values[3] == 0.3);
}

TEST_CASE("an axis without values goes to one") {
  CHECK(labels(value_ticks(0, 4)) == "0.0 0.5 1.0");
  CHECK(value_ticks(-3, 4).top() == 1);
  CHECK(value_ticks(kLeastTop, 4).top() == 1);
  CHECK(value_ticks(2 * kLeastTop, 4).top() == 2 * kLeastTop);
  CHECK(value_ticks(std::numeric_limits<double>::quiet_NaN(), 4).top() == 1);
  CHECK(value_ticks(std::numeric_limits<double>::infinity(), 4).top() == 1);
}

TEST_CASE("large numbers have an exponent") {
  CHECK(labels(value_ticks(2e7, 2)) == "0 1e+07 2e+07");
  CHECK(labels(value_ticks(5e6, 1)) == "0 5000000");
}

TEST_CASE("time has the largest unit that is not longer than a step") {
  CHECK(time_labels(8) == "0 1 2 3 4 5 6 7 8 s");
  CHECK(time_labels(100) == "0 15 30 45 60 75 90 s");
  CHECK(time_labels(240) == "0 30 60 90 120 150 180 210 240 s");
  CHECK(time_labels(241) == "0 1 2 3 4 min");
  CHECK(time_labels(3600) == "0 10 20 30 40 50 60 min");
  CHECK(time_labels(5 * 3600) == "0 1 2 3 4 5 h");
  CHECK(time_labels(24 * 3600) == "0 3 6 9 12 15 18 21 24 h");
  CHECK(time_labels(8 * 86'400) == "0 1 2 3 4 5 6 7 8 d");
  CHECK(time_labels(365 * 86'400.0) == "0 50 100 150 200 250 300 350 d");
}

TEST_CASE("no tick is beyond the span, and there are few") {
  for (double span = 0.001; span < 9e9; span *= 1.7) {
    CAPTURE(span);
    const TimeTicks time = time_ticks(span, 8);
    CHECK(time.ticks.top() * time.unit_seconds <= span);
    CHECK(time.ticks.values.size() >= 3);
    CHECK(time.ticks.values.size() <= 9);
  }
}

TEST_CASE("ticks of less than a second, and of no time") {
  CHECK(time_labels(0.5, 5) == "0.0 0.1 0.2 0.3 0.4 0.5 s");
  CHECK(time_labels(0) == "0.0 s");
}
