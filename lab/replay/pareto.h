// Cost of a policy by its violations, over a sweep of its settings. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace cgphase {

struct ParetoPoint {
  double violation = 0;  // share of samples over the limit
  double cost = 0;       // allocation, in any unit
};

// Returns the indices of the points that no other point beats in both: ascending in violation,
// descending in cost. Of equal points, the first.
std::vector<std::size_t> pareto_front(std::span<const ParetoPoint> points);

// Returns the cheapest point with at most this many violations; of equal ones the one with fewest,
// then the first. Absent if there is none.
std::optional<std::size_t> cheapest_within(std::span<const ParetoPoint> points, double violation);

// Levels at which policies are compared.
inline constexpr double kMatchedViolations[] = {0.001, 0.01, 0.05};

}  // namespace cgphase
