#include "collectors/ebpf/cost_budget.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace cgphase;

namespace {

constexpr double kHalfPercent = 0.005;

}  // namespace

TEST_CASE("programs within their budget are not changed") {
  CHECK_FALSE(next_step({}, kHalfPercent));
  CHECK_FALSE(next_step(std::array{CounterCost{0.002, 1}, CounterCost{0.003, 1}}, kHalfPercent));
  CHECK_FALSE(next_step(std::array{CounterCost{0, 1}}, kHalfPercent));
}

TEST_CASE("above the total budget the most expensive counter samples half as often") {
  CHECK(next_step(std::array{CounterCost{0.002, 1}, CounterCost{0.0031, 4}}, kHalfPercent) ==
        BudgetStep{1, 8});
}

TEST_CASE("a counter that is too expensive at the rarest sampling is unloaded") {
  CHECK(next_step(std::array{CounterCost{0.006, kRarestSampling / 2}}, kHalfPercent) ==
        BudgetStep{0, kRarestSampling});
  CHECK(next_step(std::array{CounterCost{0.006, kRarestSampling}}, kHalfPercent) ==
        BudgetStep{0, 0});
}

TEST_CASE("with a quarter of the budget used, the rarest sampling doubles") {
  CHECK(next_step(std::array{CounterCost{0.0005, 2}, CounterCost{0.0005, 8}}, kHalfPercent) ==
        BudgetStep{1, 4});
  CHECK_FALSE(next_step(std::array{CounterCost{0.00125, 8}}, kHalfPercent));
}

TEST_CASE("an unloaded counter has no cost and is not changed") {
  CHECK_FALSE(next_step(std::array{CounterCost{1, 0}}, kHalfPercent));
  CHECK(next_step(std::array{CounterCost{1, 0}, CounterCost{0.006, 1}}, kHalfPercent) ==
        BudgetStep{1, 2});
}

TEST_CASE("far below the budget, and counting each event, no measurement is needed") {
  CHECK(surely_cheap({}, kHalfPercent));
  CHECK(surely_cheap(std::array{CounterCost{0.0002, 1}, CounterCost{0.0002, 1}}, kHalfPercent));
  CHECK_FALSE(surely_cheap(std::array{CounterCost{0.0003, 1}, CounterCost{0.0002, 1}},
                           kHalfPercent));
  CHECK_FALSE(surely_cheap(std::array{CounterCost{0, 2}}, kHalfPercent));
  CHECK(surely_cheap(std::array{CounterCost{1, 0}}, kHalfPercent));  // not loaded
}

TEST_CASE("steps converge for any cost of an event") {
  for (const double full : {0.001, 0.02, 0.5, 4.0}) {
    std::vector<CounterCost> costs = {{full, 1}};
    int steps = 0;
    while (const auto step = next_step(costs, kHalfPercent)) {
      costs[0] = {step->every > 0 ? full / step->every : 0, step->every};
      REQUIRE(++steps < 20);
    }
    CAPTURE(full);
    CHECK(costs[0].core_ratio <= kHalfPercent);
  }
}
