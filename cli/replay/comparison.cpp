#include "cli/replay/comparison.h"

#include "base/check.h"

namespace cgphase {
namespace {

// Violation and cost of one point in each execution; absent where it had no seconds.
using ByExecution = std::vector<std::optional<ParetoPoint>>;

ByExecution by_execution(const SweepPoint& point, Resource resource) {
  ByExecution all;
  for (const ReplaySums& sums : point.of(resource)) {
    const bool any = sums.seconds > 0;
    const ReplayMeasures measures = any ? measures_of(sums) : ReplayMeasures{};
    all.push_back(any ? std::optional(ParetoPoint{measures.samples_over, measures.above_oracle})
                      : std::nullopt);
  }
  return all;
}

std::vector<ByExecution> by_execution(const Sweep& sweep, Resource resource) {
  std::vector<ByExecution> all;
  for (const SweepPoint& point : sweep.points) all.push_back(by_execution(point, resource));
  return all;
}

// The means over the executions drawn; absent where none of them had seconds.
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

// Of every point; a resource that was measured was so under all of them.
std::vector<ParetoPoint> means(const std::vector<ByExecution>& points,
                               std::span<const std::size_t> drawn) {
  std::vector<ParetoPoint> all;
  for (const ByExecution& point : points)
    if (const auto found = mean(point, drawn)) all.push_back(*found);
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
  const ReplaySums total = total_of(sweep.points[*index].of(resource));
  return SweepCost{sweep.points[*index].name, points[*index].cost,
                   static_cast<double>(total.writes_up + total.writes_down)};
}

ResourceComparison compare(const Sweep& a, const Sweep& b, Resource resource,
                           const BootstrapOptions& options) {
  const std::vector<ByExecution> of_a = by_execution(a, resource), of_b = by_execution(b, resource);
  const std::size_t executions = of_a.front().size();
  const auto all = everyone(executions);
  const std::vector<ParetoPoint> points_a = means(of_a, all), points_b = means(of_b, all);
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
    const std::vector<ParetoPoint> now_a = means(of_a, drawn), now_b = means(of_b, drawn);
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

std::vector<ParetoPoint> points_of(const Sweep& sweep, Resource resource) {
  if (sweep.points.empty()) return {};
  return means(by_execution(sweep, resource),
               everyone(sweep.points.front().of(resource).size()));
}

Comparison compare(const Sweep& a, const Sweep& b, const BootstrapOptions& options) {
  CHECK_INVARIANT(!a.points.empty() && !b.points.empty());
  Comparison comparison{a.name, b.name, {}};
  for (const Resource resource : kResources)
    if (measured(a.points.front().of(resource)) && measured(b.points.front().of(resource)))
      comparison.resources.push_back(compare(a, b, resource, options));
  return comparison;
}

}  // namespace cgphase
