// `--compare A B`: compares the cost of two policies at the same share of samples over the limit,
// each swept over its settings. Pure.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/replay/bootstrap.h"
#include "lab/replay/replay.h"

namespace cgphase {

// One setting of a policy.
struct ParetoPoint {
  double violation = 0;  // share of samples over the limit
  double cost = 0;       // allocation, in any unit
};

// Returns the cheapest point with at most this many violations; of equal ones the one with fewest,
// then the first. Absent if there is none.
std::optional<std::size_t> cheapest_within(std::span<const ParetoPoint> points, double violation);

// Levels at which policies are compared.
inline constexpr double kMatchedViolations[] = {0.001, 0.01, 0.05};

// Values of one resource under one setting that the comparison needs. Nothing else is kept: there
// may be thousands of executions under hundreds of settings.
struct SweptResource {
  // Per execution: share of samples over, and allocation above oracle-max relative to the original;
  // absent if it had no seconds.
  std::vector<std::optional<ParetoPoint>> by_execution;
  ReplaySums total;

  SweptResource() = default;
  SweptResource(const std::vector<ReplaySums>& executions);
  SweptResource(std::initializer_list<ReplaySums> executions)
      : SweptResource(std::vector<ReplaySums>(executions)) {}
  bool measured() const { return total.seconds > 0; }
};

// One setting of a policy and its result.
struct SweepPoint {
  std::string name;  // name of policy and setting
  SweptResource cpu, memory;  // all points have the same executions

  const SweptResource& of(Resource resource) const {
    return resource == Resource::cpu ? cpu : memory;
  }
};

struct Sweep {
  std::string name;
  std::vector<SweepPoint> points;
  // Index of the shipped setting; absent for a group of policies, such as the controls.
  std::optional<std::size_t> shipped;
};

// Share of samples over, and allocation above oracle-max, of every point, weighted by job.
std::vector<ParetoPoint> points_of(const Sweep& sweep, Resource resource);

// Cost of a sweep at a share of samples over: its cheapest point there.
struct SweepCost {
  std::string point;
  double above_oracle = 0;
  double writes = 0;  // up and down, over all executions
};

struct MatchedCosts {
  bool shipped = false;    // violation and cost of A are those of its shipped setting
  double violation = 0;
  std::optional<SweepCost> a, b;  // absent: no point has this few samples over
  std::optional<double> ratio;    // cost of A / cost of B; absent unless that of B is above 0
  std::optional<Interval> difference;  // cost of A - cost of B, paired by execution
};

struct ResourceComparison {
  Resource resource = Resource::cpu;
  std::vector<MatchedCosts> levels;  // at kMatchedViolations, then as shipped
};

struct Comparison {
  std::string a, b;
  std::vector<ResourceComparison> resources;  // measured resources
};

// Both sweeps are over the same executions, and neither is empty.
Comparison compare(const Sweep& a, const Sweep& b, const BootstrapOptions& options);

}  // namespace cgphase
