#include "lab/replay/comparison.h"

#include <tuple>

#include "base/check.h"

namespace cgphase {
namespace {

using ByExecution = std::vector<std::optional<ParetoPoint>>;

// Means over the drawn executions; absent if none of them had seconds.
std::optional<ParetoPoint> mean(const ByExecution& point, std::span<const std::size_t> drawn) {
  ParetoPoint sum;
  int count = 0;
  for (const std::size_t index : drawn) {
    if (!point[index]) continue;
    sum.violation += point[index]->violation;
    sum.cost += point[index]->cost;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return ParetoPoint{sum.violation / count, sum.cost / count};
}

// Of every point. A measured resource was measured in all of them.
std::vector<ParetoPoint> means(const Sweep& sweep, Resource resource,
                               std::span<const std::size_t> drawn) {
  std::vector<ParetoPoint> all;
  for (const SweepPoint& point : sweep.points)
    if (const auto found = mean(point.of(resource).by_execution, drawn)) all.push_back(*found);
  return all;
}

std::vector<std::size_t> everyone(std::size_t count) {
  std::vector<std::size_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

struct Level {
  double violation = 0;
  bool shipped = false;
};

std::vector<Level> levels_of(const std::vector<ParetoPoint>& a, const Sweep& sweep) {
  std::vector<Level> levels;
  for (const double violation : kMatchedViolations) levels.push_back({violation, false});
  if (sweep.shipped && *sweep.shipped < a.size())
    levels.push_back({a[*sweep.shipped].violation, true});
  return levels;
}

std::optional<std::size_t> chosen(const std::vector<ParetoPoint>& points, const Level& level,
                                  const Sweep& sweep, bool own) {
  return level.shipped && own ? sweep.shipped : cheapest_within(points, level.violation);
}

std::optional<SweepCost> cost_of(const Sweep& sweep, Resource resource,
                                 const std::vector<ParetoPoint>& points,
                                 std::optional<std::size_t> index) {
  if (!index) return std::nullopt;
  const ReplaySums& total = sweep.points[*index].of(resource).total;
  return SweepCost{sweep.points[*index].name, points[*index].cost,
                   static_cast<double>(total.writes_up + total.writes_down)};
}

ResourceComparison compare(const Sweep& a, const Sweep& b, Resource resource,
                           const BootstrapOptions& options) {
  const std::size_t executions = a.points.front().of(resource).by_execution.size();
  const auto all = everyone(executions);
  const std::vector<ParetoPoint> points_a = means(a, resource, all);
  const std::vector<ParetoPoint> points_b = means(b, resource, all);
  ResourceComparison result{resource, {}};
  for (const Level& level : levels_of(points_a, a)) {
    MatchedCosts& costs = result.levels.emplace_back();
    costs.shipped = level.shipped;
    costs.violation = level.violation;
    costs.a = cost_of(a, resource, points_a, chosen(points_a, level, a, true));
    costs.b = cost_of(b, resource, points_b, chosen(points_b, level, b, false));
    if (costs.a && costs.b && costs.b->above_oracle > 0)
      costs.ratio = costs.a->above_oracle / costs.b->above_oracle;
  }
  const auto differences = [&](std::span<const std::size_t> drawn) {
    const std::vector<ParetoPoint> now_a = means(a, resource, drawn);
    const std::vector<ParetoPoint> now_b = means(b, resource, drawn);
    std::vector<std::optional<double>> found(result.levels.size());
    if (now_a.size() != points_a.size() || now_b.size() != points_b.size()) return found;
    const std::vector<Level> levels = levels_of(now_a, a);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const auto at_a = chosen(now_a, levels[i], a, true);
      const auto at_b = chosen(now_b, levels[i], b, false);
      if (at_a && at_b) found[i] = now_a[*at_a].cost - now_b[*at_b].cost;
    }
    return found;
  };
  const auto intervals = bootstrap(executions, result.levels.size(), options, differences);
  for (std::size_t i = 0; i < intervals.size(); ++i) result.levels[i].difference = intervals[i];
  return result;
}

}  // namespace

std::optional<std::size_t> cheapest_within(std::span<const ParetoPoint> points, double violation) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].violation > violation) continue;
    const auto rank = [&](std::size_t k) {
      return std::tuple(points[k].cost, points[k].violation);
    };
    if (!best || rank(i) < rank(*best)) best = i;
  }
  return best;
}

SweptResource::SweptResource(const std::vector<ReplaySums>& executions)
    : total(total_of(executions)) {
  const Measure &violation = *find_measure("samples_over"), &cost = *find_measure("above_oracle");
  for (const ReplaySums& sums : executions) {
    std::optional<ParetoPoint>& point = by_execution.emplace_back();
    if (sums.seconds > 0) point = ParetoPoint{*violation.of(sums), *cost.of(sums)};
  }
}

std::vector<ParetoPoint> points_of(const Sweep& sweep, Resource resource) {
  if (sweep.points.empty()) return {};
  return means(sweep, resource, everyone(sweep.points.front().of(resource).by_execution.size()));
}

Comparison compare(const Sweep& a, const Sweep& b, const BootstrapOptions& options) {
  CHECK_INVARIANT(!a.points.empty() && !b.points.empty());
  Comparison comparison{a.name, b.name, {}};
  for (const Resource resource : kResources)
    if (a.points.front().of(resource).measured() && b.points.front().of(resource).measured())
      comparison.resources.push_back(compare(a, b, resource, options));
  return comparison;
}

}  // namespace cgphase
