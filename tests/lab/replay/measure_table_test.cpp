#include "lab/replay/measure_table.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/lab/replay/results.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

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

TEST_CASE("ratios are means over executions by job, and ratios of sums by resource-hour") {
  const std::vector<ReplaySums> executions = {sums(4, 0, 10), sums(5, 10, 40)};
  CHECK(by_job("alloc_vs_static", executions) == doctest::Approx((0.4 + 0.125) / 2));
  CHECK(by_hour("alloc_vs_static", executions) == doctest::Approx(9.0 / 50));
  CHECK(by_job("samples_over", executions) == doctest::Approx(0.05));
}

TEST_CASE("ratios by job equal those of mean_measures") {
  const std::vector<ReplaySums> executions = {sums(4, 3, 10), sums(5, 10, 40, 40), ReplaySums{}};
  const ReplayMeasures mean = mean_measures(executions);
  CHECK(by_job("alloc_vs_static", executions) == mean.alloc_vs_static);
  CHECK(by_job("slack", executions) == mean.slack);
  CHECK(by_job("samples_over", executions) == mean.samples_over);
  CHECK(by_job("windows_clean", executions) == mean.windows_clean);
  CHECK(by_job("overrun_area", executions) == mean.overrun_area);
  CHECK(by_job("above_oracle", executions) == mean.above_oracle);
  CHECK(by_job("gap_to_oracle", executions) == mean.gap_to_oracle);
}

TEST_CASE("counts are sums") {
  CHECK(by_job("writes_up", {sums(4, 0), sums(5, 2)}) == 4.0);
  CHECK(by_job("windows", {sums(4, 0), sums(5, 2)}) == 8.0);
}

TEST_CASE("a gap to an oracle that needs the whole limit is not defined") {
  CHECK_FALSE(by_job("gap_to_oracle", {sums(10, 0, 10, 10)}).has_value());
  CHECK(by_job("gap_to_oracle", {sums(6, 0, 10, 2), sums(10, 0, 10, 10)}) == doctest::Approx(0.5));
}

TEST_CASE("an execution without demand and limit does not count in means") {
  CHECK(by_job("alloc_vs_static", {sums(4, 0), ReplaySums{}}) == doctest::Approx(0.4));
  CHECK_FALSE(by_job("slack", {ReplaySums{}}).has_value());
  CHECK_FALSE(measured(std::vector<ReplaySums>{ReplaySums{}}));
  CHECK(measured(std::vector<ReplaySums>{ReplaySums{}, sums(4, 0)}));
}
