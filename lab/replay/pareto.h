// What a policy costs at how many violations, over a sweep of its settings. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace cgphase {

struct ParetoPoint {
  double violation = 0;  // share of samples over the limit
  double cost = 0;       // what was allocated, in any one unit
};

// The points that no other beats in both, by index: ascending in violation, descending in cost. Of
// equal points the first.
std::vector<std::size_t> pareto_front(std::span<const ParetoPoint> points);

// The cheapest point with at most that many violations, of equal ones the one with fewest, then the
// first; absent where there is none.
std::optional<std::size_t> cheapest_within(std::span<const ParetoPoint> points, double violation);

// The levels at which policies are compared.
inline constexpr double kMatchedViolations[] = {0.001, 0.01, 0.05};

}  // namespace cgphase
