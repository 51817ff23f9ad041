#include "collectors/ebpf/cost_budget.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace cgphase;

namespace {

constexpr double kHalfPercent = 0.005;

}  // namespace

TEST_CASE("programs within their budget are left as they are") {
  CHECK_FALSE(next_step({}, kHalfPercent));
  CHECK_FALSE(next_step(std::array{CounterCost{0.002, 1}, CounterCost{0.003, 1}}, kHalfPercent));
  CHECK_FALSE(next_step(std::array{CounterCost{0, 1}}, kHalfPercent));
}

TEST_CASE("above the budget of all together the dearest looks half as often") {
  CHECK(next_step(std::array{CounterCost{0.002, 1}, CounterCost{0.0031, 4}}, kHalfPercent) ==
        BudgetStep{1, 8});
}

TEST_CASE("what is too dear though it looks as rarely as it can leaves the kernel") {
  CHECK(next_step(std::array{CounterCost{0.006, kRarestLook / 2}}, kHalfPercent) ==
        BudgetStep{0, kRarestLook});
  CHECK(next_step(std::array{CounterCost{0.006, kRarestLook}}, kHalfPercent) == BudgetStep{0, 0});
}

TEST_CASE("with a quarter of the budget used what looks rarest looks twice as often again") {
  CHECK(next_step(std::array{CounterCost{0.0005, 2}, CounterCost{0.0005, 8}}, kHalfPercent) ==
        BudgetStep{1, 4});
  CHECK_FALSE(next_step(std::array{CounterCost{0.00125, 8}}, kHalfPercent));
}

TEST_CASE("what is out of the kernel neither costs nor is stepped") {
  CHECK_FALSE(next_step(std::array{CounterCost{1, 0}}, kHalfPercent));
  CHECK(next_step(std::array{CounterCost{1, 0}, CounterCost{0.006, 1}}, kHalfPercent) ==
        BudgetStep{1, 2});
}

TEST_CASE("far below the budget, and looking at each event, nothing need be measured") {
  CHECK(surely_cheap({}, kHalfPercent));
  CHECK(surely_cheap(std::array{CounterCost{0.0002, 1}, CounterCost{0.0002, 1}}, kHalfPercent));
  CHECK_FALSE(surely_cheap(std::array{CounterCost{0.0003, 1}, CounterCost{0.0002, 1}},
                           kHalfPercent));
  CHECK_FALSE(surely_cheap(std::array{CounterCost{0, 2}}, kHalfPercent));
  CHECK(surely_cheap(std::array{CounterCost{1, 0}}, kHalfPercent));  // out of the kernel
}

TEST_CASE("steps come to rest, whatever the cost of an event is") {
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
