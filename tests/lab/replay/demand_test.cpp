#include "lab/replay/demand.h"

#include <doctest/doctest.h>

#include "tests/model/synthetic_trace.h"

using namespace cgphase;
using doctest::Approx;

namespace {

Execution steady(int rows) {
  Execution execution = synthetic_trace(1, rows).executions.front();
  for (std::size_t i = 0; i < execution.rows.size(); ++i) {
    execution.rows[i].sample.cpu.usage_usec = i * 500'000;
    execution.rows[i].sample.memory.anon_bytes = 300 * kMiB;
  }
  return execution;
}

}  // namespace

TEST_CASE("demand is CPU over each interval and need at its end") {
  const auto points = demand_of(steady(3), 1);
  REQUIRE(points.size() == 3);
  CHECK_FALSE(points[0].cpu_cores);
  CHECK(points[0].interval_seconds == 0);
  CHECK(*points[1].cpu_cores == Approx(0.5));
  CHECK(points[2].interval_seconds == 1);
  CHECK(*points[2].memory_bytes == 300.0 * kMiB);
  CHECK_FALSE(points[2].cpu_censored);
}

TEST_CASE("an unrecorded host bounds no limit") {
  Execution execution = steady(3);
  execution.host = {.cpu_cores = 1.5, .memory = Bytes{kGiB}};
  execution.host_cores_told = execution.host_memory_told = false;
  CHECK(told_host(execution).cpu_cores == 0);
  CHECK(told_host(execution).memory == Bytes{});
  execution.original = {};  // then the largest use is the reference
  CHECK(told_host(execution).cpu_cores == 1.5);
  CHECK(told_host(execution).memory == Bytes{kGiB});
  execution = steady(3);
  CHECK(told_host(execution).cpu_cores == 8);
}

TEST_CASE("the cadence is the usual interval between rows") {
  Execution execution = steady(5);
  execution.rows[4].time += std::chrono::hours(1);
  CHECK(cadence_of(execution) == 1);
  CHECK(cadence_of(Execution{}) == 1);
}

TEST_CASE("more than three lost intervals are a gap, three are not") {
  Execution execution = steady(3);
  execution.rows[2].time = MonotonicTime(std::chrono::seconds(4));
  CHECK(demand_of(execution, 1)[2].interval_seconds == 3);
  execution.rows[2].time = MonotonicTime(std::chrono::milliseconds(4001));
  CHECK(demand_of(execution, 1)[2].interval_seconds == 0);
  CHECK_FALSE(demand_of(execution, 1)[2].cpu_cores);
}

TEST_CASE("a counter that fell gives no value") {
  Execution execution = steady(3);
  execution.rows[2].sample.cpu.usage_usec = 0;
  CHECK_FALSE(demand_of(execution, 1)[2].cpu_cores);
}

TEST_CASE("throttling and use at the limit censor the CPU") {
  Execution execution = steady(4);
  execution.rows[0].sample.cpu.nr_throttled = execution.rows[1].sample.cpu.nr_throttled = 3;
  execution.rows[2].sample.cpu.nr_throttled = 4;
  execution.rows[3].sample.cpu.usage_usec =
      *execution.rows[2].sample.cpu.usage_usec + 1'960'000;  // of a limit of 2 cores
  const auto points = demand_of(execution, 1);
  CHECK_FALSE(points[1].cpu_censored);
  CHECK(points[2].throttled);
  CHECK(points[2].cpu_censored);
  CHECK_FALSE(points[3].throttled);
  CHECK(points[3].cpu_censored);
}

TEST_CASE("memory at its limit, or a memory event, censors the memory") {
  Execution execution = steady(3);
  execution.rows[1].sample.memory.anon_bytes = kGiB - kMiB;
  execution.rows[1].sample.memory_events.max = 0;
  execution.rows[2].sample.memory_events.max = 1;
  const auto points = demand_of(execution, 1);
  CHECK_FALSE(points[0].memory_censored);
  CHECK(points[1].memory_censored);
  CHECK(points[2].memory_censored);
}

TEST_CASE("the working set leaves out inactive file pages") {
  Execution execution = steady(2);
  CHECK_FALSE(demand_of(execution, 1)[0].working_set_bytes);
  execution.rows[0].sample.memory_current = Bytes{900};
  execution.rows[0].sample.memory.inactive_file_bytes = 400;
  CHECK(demand_of(execution, 1)[0].working_set_bytes == 500.0);
}
