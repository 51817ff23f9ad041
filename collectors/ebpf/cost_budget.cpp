#include "collectors/ebpf/cost_budget.h"

namespace cgphase {

std::optional<BudgetStep> next_step(std::span<const CounterCost> costs, double budget_ratio) {
  constexpr double kPlenty = 0.25;  // sampling twice as often costs at most twice as much
  double sum = 0;
  std::optional<std::size_t> dearest, rarest;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].every == 0) continue;
    sum += costs[i].core_ratio;
    if (!dearest || costs[i].core_ratio > costs[*dearest].core_ratio) dearest = i;
    if (!rarest || costs[i].every > costs[*rarest].every) rarest = i;
  }
  if (!dearest) return std::nullopt;
  if (sum > budget_ratio) {
    const std::uint32_t every = costs[*dearest].every;
    return BudgetStep{*dearest, every >= kRarestSampling ? 0 : 2 * every};
  }
  if (sum < kPlenty * budget_ratio && costs[*rarest].every > 1)
    return BudgetStep{*rarest, costs[*rarest].every / 2};
  return std::nullopt;
}

bool surely_cheap(std::span<const CounterCost> expected, double budget_ratio) {
  constexpr double kSurely = 0.1;
  double sum = 0;
  for (const CounterCost& cost : expected) {
    if (cost.every > 1) return false;  // it may sample more often
    if (cost.every == 1) sum += cost.core_ratio;
  }
  return sum < kSurely * budget_ratio;
}

}  // namespace cgphase
