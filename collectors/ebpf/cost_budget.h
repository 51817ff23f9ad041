// What the counting programs may cost: pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace cgphase {

// What one counter costs now: a share of one core, while it looks at one event of `every`. 0: its
// programs are not in the kernel.
struct CounterCost {
  double core_ratio = 0;
  std::uint32_t every = 1;
};

// Beyond it there is not enough left to look at.
inline constexpr std::uint32_t kRarestLook = 1024;

// Which counter is to look at one event of how many from now on; 0: its programs leave the kernel.
struct BudgetStep {
  std::size_t counter = 0;
  std::uint32_t every = 1;
  bool operator==(const BudgetStep&) const = default;
};

// One step from what all cost together towards `budget_ratio` of a core: the dearest looks half as
// often, or what looks rarest twice as often where a quarter of the budget is enough for all.
// Nothing where they are well.
std::optional<BudgetStep> next_step(std::span<const CounterCost> costs, double budget_ratio);

// Whether what the programs would cost, going by their events, is so far below the budget that it
// need not be measured: then next_step() has nothing to say whatever a measurement finds.
bool surely_cheap(std::span<const CounterCost> expected, double budget_ratio);

}  // namespace cgphase
