#include "lab/replay/measures.h"

#include <doctest/doctest.h>

#include <array>

using namespace cgphase;
using doctest::Approx;

namespace {

// Ten seconds with a limit of 4 and an original of 8; the oracle allocates 2.
ReplaySums ten_seconds() {
  return {.seconds = 10, .allocated = 40, .original = 80, .oracle = 20, .demanded = 15,
          .slack_seconds = 6, .overrun = 3, .samples = 10, .samples_over = 1,
          .windows = 4, .windows_clean = 3};
}

}  // namespace

TEST_CASE("measures are ratios of the sums") {
  const ReplayMeasures measures = measures_of(ten_seconds());
  CHECK(measures.alloc_vs_static == 0.5);
  CHECK(measures.slack == 0.6);
  CHECK(measures.samples_over == 0.1);
  CHECK(measures.windows_clean == 0.75);
  CHECK(measures.overrun_area == 0.2);
  CHECK(measures.above_oracle == 0.25);
  REQUIRE(measures.gap_to_oracle);
  CHECK(*measures.gap_to_oracle == Approx(1.0 / 3));
}

TEST_CASE("an oracle that needs the whole limit has no gap") {
  ReplaySums sums = ten_seconds();
  sums.oracle = sums.original;
  CHECK_FALSE(measures_of(sums).gap_to_oracle);
}

TEST_CASE("sums add up: long executions weigh more by resource-hour, not by job") {
  ReplaySums small = ten_seconds(), large = ten_seconds();
  large.allocated = 720;
  large.original = 800;
  ReplaySums both = small;
  both += large;
  CHECK(measures_of(both).alloc_vs_static == Approx(760.0 / 880));
  const std::array executions{small, large};
  CHECK(mean_measures(executions).alloc_vs_static == Approx(0.7));
  CHECK(both.samples == 20);
  CHECK(both.windows_clean == 6);
}

TEST_CASE("an execution without measurements does not count") {
  const std::array executions{ten_seconds(), ReplaySums{}};
  CHECK(mean_measures(executions).alloc_vs_static == 0.5);
  CHECK(mean_measures(executions).gap_to_oracle == measures_of(ten_seconds()).gap_to_oracle);
  CHECK_FALSE(mean_measures({}).gap_to_oracle);
}
