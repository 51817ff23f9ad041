// `--compare A B`: what two policies cost at the same share of samples over the limit, each over a
// sweep of its settings. Pure.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "lab/replay/bootstrap.h"
#include "lab/replay/measure_table.h"
#include "lab/replay/pareto.h"

namespace cgphase {

// What is compared of one resource under one setting. There may be thousands of executions under
// each of hundreds of settings: of each it keeps no more than that.
struct SweptResource {
  // Share of samples over and what is allocated above oracle-max, relative to the original, of each
  // execution; absent where it had no seconds.
  std::vector<std::optional<ParetoPoint>> by_execution;
  ReplaySums total;
  ReplayMeasures mean;  // by job

  SweptResource() = default;
  SweptResource(const std::vector<ReplaySums>& executions);
  SweptResource(std::initializer_list<ReplaySums> executions)
      : SweptResource(std::vector<ReplaySums>(executions)) {}
  bool measured() const { return total.seconds > 0; }
};

// One setting of a policy, and what came of it.
struct SweepPoint {
  std::string name;  // of policy and setting
  SweptResource cpu, memory;  // the same executions for all points

  const SweptResource& of(Resource resource) const {
    return resource == Resource::cpu ? cpu : memory;
  }
};

struct Sweep {
  std::string name;
  std::vector<SweepPoint> points;
  // The setting that is shipped, by index; absent for a crowd of policies, as the controls.
  std::optional<std::size_t> shipped;
};

// Share of samples over and what is allocated above oracle-max of every point, weighted by job.
std::vector<ParetoPoint> points_of(const Sweep& sweep, Resource resource);

// What one sweep costs at a share of samples over: its cheapest point there.
struct SweepCost {
  std::string point;
  double above_oracle = 0;
  double writes = 0;  // up and down, of all executions
};

struct MatchedCosts {
  bool shipped = false;    // the violation is that of A as shipped, and so is A's cost
  double violation = 0;
  std::optional<SweepCost> a, b;  // absent: no point has so few samples over
  std::optional<double> ratio;    // of the costs, A to B; absent unless B's is above 0
  std::optional<Interval> difference;  // of the costs, A - B, paired by execution
};

struct ResourceComparison {
  Resource resource = Resource::cpu;
  std::vector<MatchedCosts> levels;  // at kMatchedViolations, then as shipped
};

struct Comparison {
  std::string a, b;
  std::vector<ResourceComparison> resources;  // those that were measured
};

// Both sweeps over the same executions; neither is empty.
Comparison compare(const Sweep& a, const Sweep& b, const BootstrapOptions& options);

}  // namespace cgphase
