#include "lab/replay/scoring.h"

#include <doctest/doctest.h>

using namespace cgphase;
using doctest::Approx;

namespace {

// One point per second with this CPU demand; the first has none.
std::vector<DemandPoint> points_with(const std::vector<double>& cores) {
  std::vector<DemandPoint> points{{.seconds = 0, .memory_bytes = 1e9, .working_set_bytes = 1e9}};
  for (const double value : cores)
    points.push_back({.seconds = points.back().seconds + 1, .interval_seconds = 1,
                      .cpu_cores = value, .memory_bytes = 1e9, .working_set_bytes = 1e9});
  return points;
}

constexpr ReplaySettings kSettings{.loop = {.enabled = true}, .window_seconds = 2};

}  // namespace

TEST_CASE("without a step there is a decision at every sample") {
  DecisionGrid grid(0, 1);
  for (const double seconds : {0.0, 0.1, 5.0}) CHECK(grid.due(seconds));
}

TEST_CASE("with a step there is a decision at the sample nearest to each multiple") {
  DecisionGrid grid(10, 1);
  CHECK(grid.due(100));
  CHECK_FALSE(grid.due(101));
  CHECK_FALSE(grid.due(109.4));
  CHECK(grid.due(109.6));
  CHECK_FALSE(grid.due(110.6));
  CHECK(grid.due(120));
  CHECK(grid.due(155));  // multiples within a gap are skipped
  CHECK_FALSE(grid.due(158));
  CHECK(grid.due(160));
}

TEST_CASE("a gap of a hundred years is one step of the grid") {
  DecisionGrid grid(0.001, 1);
  CHECK(grid.due(0));
  CHECK(grid.due(4e9));
  CHECK(grid.due(4e9 + 1));
}

TEST_CASE("served CPU time is demand minus backlog, and never falls") {
  ServedUsage used;
  CHECK(used.at(1'000'000, 0) == 1'000'000);
  CHECK(used.at(3'000'000, 0.5) == 2'500'000);
  CHECK(used.at(3'100'000, 1) == 2'500'000);
  CHECK(used.at(4'000'000, 0) == 4'000'000);
  CHECK(used.at(10, 0) == 10);  // the counter was restarted
  CHECK_FALSE(used.at(std::nullopt, 0));
  CHECK(ServedUsage().at(10, 1e19) == 0);  // a backlog beyond 64 bits
}

TEST_CASE("a sample is over if it exceeds the limit decided before, raised since or not") {
  const auto points = points_with({0.5, 1.5, 1.5});
  ResourceScore score(kSettings, Resource::cpu, 2, points);
  score.advance(0);
  score.set(1);
  score.advance(1);
  score.advance(2);
  CHECK(score.limit() > 1.5);  // the guard
  score.advance(3);
  const ReplaySums sums = score.sums();
  CHECK(sums.samples == 3);
  CHECK(sums.samples_over == 1);
  CHECK(sums.writes_down == 1);
  CHECK(sums.writes_up == 0);  // raises of the guard are not counted here
  CHECK(sums.guard_raises >= 3);
  CHECK(sums.windows == 2);
  CHECK(sums.windows_clean == 1);  // a window ends with its last moment: (0, 2] and (2, 4]
}

TEST_CASE("limits are rounded up to a microsecond of quota or a page, above a floor") {
  const auto points = points_with({0.5});
  ResourceScore cpu(kSettings, Resource::cpu, 2, points);
  cpu.set(1.000001);
  CHECK(cpu.limit() == Approx(1.00001));
  // Ceil(0.6950000000000001 * 1e5) / 1e5 is one bit less than what was wanted.
  for (const double wanted : {0.051000000000000004, 0.6950000000000001}) {
    cpu.set(wanted);
    CHECK(cpu.limit() >= wanted);
    CHECK(cpu.limit() < wanted + 1.1e-5);
  }
  cpu.set(0);
  CHECK(cpu.limit() == ResourceScore::kCpuFloorCores);
  cpu.set(5);
  CHECK(cpu.limit() == 2);
  ResourceScore memory(kSettings, Resource::memory, 1e9, points);
  memory.set(8'000'001);
  CHECK(memory.limit() == 8'003'584);  // 1954 pages
  memory.set(1);
  CHECK(memory.limit() == ResourceScore::kMemoryFloorBytes);
}

TEST_CASE("the working set may exceed a limit that the need does not") {
  auto points = points_with({0.5, 0.5});
  points[2].working_set_bytes = 2.9e9;
  ResourceScore memory(kSettings, Resource::memory, 3e9, points);
  memory.advance(0);
  memory.set(1.5e9);
  memory.advance(1);
  memory.advance(2);
  CHECK(memory.sums().would_oom == 0);
  CHECK(memory.sums().would_oom_working_set == 1);
}

TEST_CASE("wastage is the unused limit, in core-hours or GB-hours") {
  const auto points = points_with({0.5, 0.5, 0.5});
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    ResourceScore score({}, resource, resource == Resource::cpu ? 2 : 2.5e9, points);
    for (std::size_t i = 0; i < points.size(); ++i) score.advance(i);
    CHECK(score.sums().wastage == Approx(3 * 1.5 / 3600));
  }
}

TEST_CASE("each window that runs out of memory wastes all memory allocated until then") {
  auto points = points_with({0.5, 0.5, 0.5});
  points[2].memory_bytes = points[3].memory_bytes = 2e9;
  ResourceScore memory({}, Resource::memory, 3e9, points);
  memory.advance(0);
  memory.set(1.5e9);
  const double limit = memory.limit();  // rounded up to a page
  memory.advance(1);
  CHECK(memory.sums().wastage == Approx((limit - 1e9) / 1e9 / 3600));
  memory.advance(2);
  // Need passes the limit halfway: 0.5 GB for 1 s, 0.125 GB-s, and two seconds of 1.5 GB.
  CHECK(memory.sums().wastage == Approx(3.625 / 3600).epsilon(1e-5));
  memory.advance(3);  // the same window: one failed attempt
  CHECK(memory.sums().wastage == Approx(3.625 / 3600).epsilon(1e-5));
  CHECK(memory.sums().would_oom == 1);
}

TEST_CASE("oracle-max is summed on the grid of decisions") {
  const auto points = points_with({0.5, 1.5, 0.5, 0.5});
  ResourceScore score(kSettings, Resource::cpu, 2, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    score.advance(i);
    score.decide(i);
  }
  // Windows of 2 s from 0, 1, 2 and 3 s: 1.5, 1.5, 0.5, 0.5.
  CHECK(score.sums().oracle == Approx(4));
}

TEST_CASE("a gap counts for nothing") {
  auto points = points_with({0.5, 0.5, 0.5});
  points[2].interval_seconds = 0;
  points[2].cpu_cores.reset();
  ResourceScore score(kSettings, Resource::cpu, 2, points);
  for (std::size_t i = 0; i < points.size(); ++i) score.advance(i);
  CHECK(score.sums().seconds == 2);
}
