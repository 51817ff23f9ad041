// Keeps the cost of the counting programs within a budget. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace cgphase {

// The present cost of one counter as a fraction of one core, while it counts one event of `every`.
// 0 means that its programs are not loaded.
struct CounterCost {
  double core_ratio = 0;
  std::uint32_t every = 1;
};

// With rarer sampling, too few events would be counted.
inline constexpr std::uint32_t kRarestSampling = 1024;

// The counter to change, and the new sampling: it counts one event of `every`. 0: its programs are
// unloaded.
struct BudgetStep {
  std::size_t counter = 0;
  std::uint32_t every = 1;
  bool operator==(const BudgetStep&) const = default;
};

// One step from the total cost towards `budget_ratio` of a core. The most expensive counter samples
// half as often. Or, if a quarter of the budget is enough for all, the rarest samples twice as
// often. Absent if nothing should change.
std::optional<BudgetStep> next_step(std::span<const CounterCost> costs, double budget_ratio);

// True if the cost that the number of events implies is so far below the budget that no measurement
// is needed. next_step() would then change nothing for any measurement.
bool surely_cheap(std::span<const CounterCost> expected, double budget_ratio);

}  // namespace cgphase
