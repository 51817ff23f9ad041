#include "lab/replay/measures.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace cgphase;
using doctest::Approx;

namespace {

// Ten seconds with a limit of 4 and an original of 8; the oracle allocates 2.
ReplaySums ten_seconds() {
  return {.seconds = 10, .allocated = 40, .original = 80, .oracle = 20, .demanded = 15,
          .slack_seconds = 6, .overrun = 3, .samples = 10, .samples_over = 1,
          .windows = 4, .windows_clean = 3, .writes_up = 2};
}

std::optional<double> by_job(const char* name, const std::vector<ReplaySums>& executions) {
  return weighted_by_job(*find_measure(name), executions);
}

std::optional<double> by_hour(const char* name, const std::vector<ReplaySums>& executions) {
  return weighted_by_resource_hour(*find_measure(name), executions);
}

}  // namespace

TEST_CASE("every measure is found by its name, and names are unique") {
  std::set<std::string_view> names;
  for (const Measure& measure : all_measures()) {
    CHECK(find_measure(measure.name) == &measure);
    CHECK(names.insert(measure.name).second);
  }
  CHECK(find_measure("nothing") == nullptr);
}

TEST_CASE("measures are ratios of the sums") {
  const std::vector<ReplaySums> one = {ten_seconds()};
  CHECK(by_job("alloc_vs_static", one) == 0.5);
  CHECK(by_job("slack", one) == 0.6);
  CHECK(by_job("samples_over", one) == 0.1);
  CHECK(by_job("windows_clean", one) == 0.75);
  CHECK(by_job("overrun_area", one) == 0.2);
  CHECK(by_job("above_oracle", one) == 0.25);
  CHECK(by_job("gap_to_oracle", one) == Approx(1.0 / 3));
}

TEST_CASE("an oracle that needs the whole limit has no gap") {
  ReplaySums sums = ten_seconds();
  sums.oracle = sums.original;
  CHECK_FALSE(by_job("gap_to_oracle", {sums}));
  CHECK(by_job("gap_to_oracle", {ten_seconds(), sums}) == Approx(1.0 / 3));
}

TEST_CASE("sums add up: long executions weigh more by resource-hour, not by job") {
  ReplaySums large = ten_seconds();
  large.allocated = 720;
  large.original = 800;
  const std::vector<ReplaySums> executions = {ten_seconds(), large};
  CHECK(by_hour("alloc_vs_static", executions) == Approx(760.0 / 880));
  CHECK(by_job("alloc_vs_static", executions) == Approx(0.7));
  CHECK(mean_of("alloc_vs_static", executions) == Approx(0.7));
  CHECK(total_of(executions).samples == 20);
  CHECK(total_of(executions).windows_clean == 6);
}

TEST_CASE("counts and amounts are sums") {
  ReplaySums sums = ten_seconds();
  sums.wastage = 0.25;
  CHECK(by_job("wastage", {sums, sums}) == 0.5);
  CHECK(total_of(std::vector<ReplaySums>{sums, sums}).wastage == 0.5);
  CHECK(by_job("writes_up", {ten_seconds(), ten_seconds()}) == 4.0);
  CHECK(by_job("windows", {ten_seconds(), ten_seconds()}) == 8.0);
}

TEST_CASE("an execution without demand and limit does not count in means") {
  CHECK(by_job("alloc_vs_static", {ten_seconds(), ReplaySums{}}) == 0.5);
  CHECK_FALSE(by_job("slack", {ReplaySums{}}));
  CHECK_FALSE(measured(std::vector<ReplaySums>{ReplaySums{}}));
  CHECK(measured(std::vector<ReplaySums>{ReplaySums{}, ten_seconds()}));
}
