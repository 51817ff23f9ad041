#include "tests/workloads/results_verdict.h"

#include <algorithm>

namespace cgphase::workloads {
namespace {

// A compared with B, without confidence intervals.
std::optional<ResourceComparison> compared(const Sweep& a, const Sweep& b, Resource resource) {
  const Comparison comparison = compare(a, b, {.seed = 1, .resamples = 0});
  const ResourceComparison* one = resource_of(comparison, resource);
  return one == nullptr ? std::nullopt : std::optional(*one);
}

Ratios ratios_of(const ResourceComparison& comparison) {
  Ratios ratios;
  for (std::size_t i = 0; i < std::size(ratios.at); ++i) ratios.at[i] = comparison.levels[i].ratio;
  return ratios;
}

// Ours is compared with the better of AI4DL's two policies at each level.
Ratios against_ai4dl(const SetResults& results, const Sweep& ours, Resource resource) {
  Ratios worst;
  for (const Sweep& ai4dl : results.ai4dl) {
    const auto comparison = compared(ours, ai4dl, resource);
    if (!comparison) continue;
    const Ratios ratios = ratios_of(*comparison);
    for (std::size_t i = 0; i < std::size(worst.at); ++i)
      if (ratios.at[i] && (!worst.at[i] || *ratios.at[i] > *worst.at[i]))
        worst.at[i] = ratios.at[i];
  }
  return worst;
}

// The cost of ours with as few samples over as AI4DL's published policies, relative to their cost;
// the higher of the two.
std::optional<double> against_published(const SetResults& results, const Sweep& ours,
                                        Resource resource) {
  std::optional<double> worst;
  const auto mine = points_of(ours, resource);
  for (const Sweep& ai4dl : results.ai4dl) {
    const auto theirs = points_of(ai4dl, resource);
    if (theirs.empty() || !ai4dl.shipped) continue;
    const ParetoPoint& published = theirs[*ai4dl.shipped];
    const auto at = cheapest_within(mine, published.violation);
    if (!at || !(published.cost > 0)) continue;
    const double ratio = mine[*at].cost / published.cost;
    worst = std::max(ratio, worst.value_or(ratio));
  }
  return worst;
}

}  // namespace

const ContenderResult* find(const SetResults& results, std::string_view policy) {
  for (const ContenderResult& result : results.shipped)
    if (result.contender.policy.name == policy) return &result;
  return nullptr;
}

double writes_of(const std::vector<ReplaySums>& executions) {
  const ReplaySums total = total_of(executions);
  return static_cast<double>(total.writes_up + total.writes_down);
}

const ResourceComparison* resource_of(const Comparison& comparison, Resource resource) {
  for (const ResourceComparison& one : comparison.resources)
    if (one.resource == resource) return &one;
  return nullptr;
}

std::optional<Verdict> verdict_of(const SetResults& results, const Sweep& ours,
                                  Resource resource) {
  const SweepPoint& point = ours.points[ours.shipped.value_or(0)];
  if (!point.of(resource).measured()) return std::nullopt;
  const auto comparison = compared(ours, results.controls, resource);
  if (!comparison) return std::nullopt;
  Verdict verdict;
  verdict.controls = ratios_of(*comparison);
  verdict.ai4dl = against_ai4dl(results, ours, resource);
  verdict.published = against_published(results, ours, resource);
  const MatchedCosts& shipped = comparison->levels.back();
  verdict.at_shipped = shipped.ratio;
  verdict.over = shipped.violation;
  if (shipped.a) verdict.ours_above = shipped.a->above_oracle;
  if (shipped.b) verdict.controls_above = shipped.b->above_oracle;
  if (const ContenderResult* hold = find(results, "hold")) {
    const double writes = writes_of(sums_of(*hold, resource));
    if (writes > 0) verdict.writes_ratio = writes_of({point.of(resource).total}) / writes;
  }
  verdict.would_oom = point.of(resource).total.would_oom;
  return verdict;
}

}  // namespace cgphase::workloads
