#include "tests/workloads/results_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "cli/replay/comparison.h"

namespace cgphase::workloads {
namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr double kLevel = 0.01;  // of samples over, where one number stands for a curve

std::string percent(double share, int digits = 1) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}

std::string cell(const std::optional<double>& share) { return share ? percent(*share) : "-"; }

std::string title_of(Resource resource) { return resource == Resource::cpu ? "CPU" : "memory"; }


// ---------------------------------------------------------------------------------------------
// What the goals ask for, of one set and resource.

// Cost of ours to that of others at the same share of samples over; absent where one of them cannot
// be had so low.
struct Ratios {
  std::optional<double> at[std::size(kMatchedViolations)];
};

struct Verdict {
  std::optional<double> at_shipped;  // to the controls, at ours as shipped
  std::optional<double> ours_above, controls_above;
  Ratios controls, ai4dl;
  std::optional<double> published;   // to AI4DL's as published
  double over = 0;          // of ours as shipped
  double writes_ratio = 0;  // to hold as published
  std::int64_t would_oom = 0;
};

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

// A to B, without how sure it is.
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

// The better of AI4DL's two at each level is what ours is held against.
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

// Ours with as few samples over as AI4DL's policies as published, to their cost; the higher of the
// two.
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

std::string ratios_text(const Ratios& ratios) {
  std::string text;
  for (const auto& ratio : ratios.at) text += (text.empty() ? "" : ", ") + cell(ratio);
  return text;
}

std::optional<Verdict> verdict_of(const SetResults& results, const Sweep& ours,
                                  Resource resource) {
  const SweepPoint& point = ours.points[ours.shipped.value_or(0)];
  if (!measured(point.of(resource))) return std::nullopt;
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
    if (writes > 0) verdict.writes_ratio = writes_of(point.of(resource)) / writes;
  }
  verdict.would_oom = total_of(point.of(resource)).would_oom;
  return verdict;
}

void goals(std::span<const SetResults> sets, Out out) {
  fmt::format_to(out,
                 "| set | resource | policy | over | above oracle: ours | controls at that | "
                 "ours / controls | at 0.1, 1, 5 % over | ours / AI4DL as published | "
                 "at 0.1, 1, 5 % over | writes / hold | would-OOM windows |\n"
                 "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const SetResults& results : sets)
    for (const Resource resource : kResources)
      for (const Sweep& ours : results.ours) {
        const auto verdict = verdict_of(results, ours, resource);
        if (!verdict) continue;
        fmt::format_to(out,
                       "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} | {} |\n",
                       results.set->name, title_of(resource), ours.name,
                       percent(verdict->over, 2), cell(verdict->ours_above),
                       cell(verdict->controls_above), cell(verdict->at_shipped),
                       ratios_text(verdict->controls), cell(verdict->published),
                       ratios_text(verdict->ai4dl), verdict->writes_ratio,
                       resource == Resource::cpu ? "-" : fmt::format("{}", verdict->would_oom));
      }
}

// ---------------------------------------------------------------------------------------------
// One set.

void policies(const SetResults& results, Resource resource, Out out) {
  fmt::format_to(out,
                 "\n**{}**\n\n| policy | of static | above oracle | slack | over | clean windows "
                 "| overrun | {} | writes/h |\n|---|---|---|---|---|---|---|---|---|\n",
                 resource == Resource::cpu ? "CPU" : "Memory",
                 resource == Resource::cpu ? "throttled" : "would-OOM (working set)");
  for (const ContenderResult& result : results.shipped) {
    const std::vector<ReplaySums> executions = sums_of(result, resource);
    if (!measured(executions)) continue;
    const ReplayMeasures mean = mean_measures(executions);
    const ReplaySums total = total_of(executions);
    const std::string harm =
        resource == Resource::cpu
            ? percent(total.throttled_seconds / total.seconds, 2)
            : fmt::format("{} ({})", total.would_oom, total.would_oom_working_set);
    fmt::format_to(out, "| {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} |\n",
                   result.contender.policy.name, percent(mean.alloc_vs_static),
                   percent(mean.above_oracle), percent(mean.slack), percent(mean.samples_over, 2),
                   percent(mean.windows_clean), percent(mean.overrun_area, 2), harm,
                   writes_of(executions) * 3600 / total.seconds);
  }
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return fmt::format("{:+.1f} .. {:+.1f}", 100 * interval->low, 100 * interval->high);
}

std::string cost_text(const std::optional<SweepCost>& cost) {
  if (!cost) return "-";
  return fmt::format("{} ({})", percent(cost->above_oracle), cost->point);
}

void matched(const SetResults& results, Resource resource, Out out) {
  fmt::format_to(out,
                 "\n| at equal samples over | level | ours | controls, and which | ours / controls "
                 "| difference, 95 % of resamples (points) |\n|---|---|---|---|---|---|\n");
  for (const Sweep& ours : results.ours) {
    const Comparison comparison = compare(ours, results.controls, {});
    const ResourceComparison* one = resource_of(comparison, resource);
    if (one == nullptr) continue;
    for (const MatchedCosts& costs : one->levels)
      fmt::format_to(out, "| {} | {}{} | {} | {} | {} | {} |\n", ours.name,
                     percent(costs.violation, 2), costs.shipped ? " (as shipped)" : "",
                     cost_text(costs.a), cost_text(costs.b), cell(costs.ratio),
                     interval_text(costs.difference));
  }
}

void ablations(const SetResults& results, Out out) {
  fmt::format_to(out,
                 "\n`phase` on other phases, as shipped (in brackets: at 1 %):\n\n| phases from "
                 "| CPU above oracle | CPU over | memory above oracle | memory over |\n"
                 "|---|---|---|---|---|\n");
  for (const Ablation& ablation : results.ablations) {
    std::string row = fmt::format("| {} |", ablation.name);
    for (const Resource resource : kResources) {
      const auto points = points_of(ablation.sweep, resource);
      if (points.empty() || !measured(ablation.sweep.points.front().of(resource))) {
        row += " - | - |";
        continue;
      }
      const ParetoPoint& shipped = points[ablation.sweep.shipped.value_or(0)];
      const auto at = cheapest_within(points, kLevel);
      row += fmt::format(" {} ({}) | {} |", percent(shipped.cost),
                         at ? percent(points[*at].cost) : "-", percent(shipped.violation, 2));
    }
    fmt::format_to(out, "{}\n", row);
  }
}

void cold_start(const SetResults& results, Out out) {
  if (results.cold_start.empty()) return;
  fmt::format_to(out,
                 "\nThe first five minutes, one earlier run known: what is allocated, of "
                 "oracle-max\n\n| policy | CPU | memory |\n|---|---|---|\n");
  for (const auto& [name, result] : results.cold_start) {
    std::string row = fmt::format("| {} |", name);
    for (const Resource resource : kResources) {
      const ReplaySums total = total_of(sums_of(result, resource));
      row += total.oracle > 0 ? fmt::format(" {:.2f} |", total.allocated / total.oracle) : " - |";
    }
    fmt::format_to(out, "{}\n", row);
  }
}

void censored(const SetResults& results, Out out) {
  const ContenderResult* first = find(results, "static");
  if (first == nullptr) return;
  const ReplaySums cpu = total_of(sums_of(*first, Resource::cpu));
  const ReplaySums memory = total_of(sums_of(*first, Resource::memory));
  const auto share = [](const ReplaySums& sums) {
    return sums.samples > 0
               ? static_cast<double>(sums.samples_censored) / static_cast<double>(sums.samples)
               : 0;
  };
  fmt::format_to(out,
                 "{} executions, {:.1f} h, window {:.0f} s. Recorded at the limit: {} of the CPU "
                 "samples, {} of the memory samples.\n",
                 results.set->executions.size(), std::max(cpu.seconds, memory.seconds) / 3600,
                 results.set->window_seconds, percent(share(cpu)), percent(share(memory)));
}

void one_set(const SetResults& results, Out out) {
  fmt::format_to(out, "\n## {} (`{}`)\n\n", results.set->title, results.set->name);
  censored(results, out);
  for (const Resource resource : kResources) {
    const SweepPoint& any = results.ours.front().points.front();
    if (!measured(any.of(resource))) continue;
    policies(results, resource, out);
    matched(results, resource, out);
    fmt::format_to(out, "\n![{} of {}](results/{}-pareto-{}.svg)\n", title_of(resource),
                   results.set->name, results.set->name, to_string(resource));
  }
  ablations(results, out);
  cold_start(results, out);
}

constexpr const char* kIntroduction =
    R"(# Results

What every policy would have done to recorded executions, and whether knowing phases pays. This
file and its figures are made by one command, the same bytes each time:

    scripts/results TRACES

TRACES is a directory of public traces in the trace format: `ai4dl/` (AI4DL's examples and model),
`torch/`, `supercloud/` and `nezha/`; without it only our own recordings (tests/data) are replayed.

Closed loop as docs/replay.md defines it: a decision at each sample, and a guard that raises 100 ms
after demand came within 5 % of the limit. All figures are weighted by job.

- *Above oracle*: what was allocated beyond `oracle-max`, in per cent of the user's limit.
- *Over*: share of samples whose demand was above the limit that the policy had set for them.
- *Controls*: the envelope of `sliding` and `hold` over all their parameters, that is the cheapest
  of some hundreds with no more samples over, chosen with hindsight on the executions scored.
- Ours have one knob, the risk, and are swept over it; all else runs as published.
- Own recordings: what was recorded first is known (earlier runs of the same image), and our model
  was trained on it; the held-out runs are scored. On the public traces our model has seen nothing;
  what a run teaches serves later runs of the same service in the same trace.
- AI4DL's statistics are those of the training runs; where there are none, of the scored runs
  themselves, which is in its favour.
- Usage recorded at a limit was cut by it: that demand may have been higher.

## Goals

)";

}  // namespace

std::string results_text(std::span<const SetResults> sets) {
  std::string text = kIntroduction;
  const Out out = std::back_inserter(text);
  goals(sets, out);
  for (const SetResults& results : sets) one_set(results, out);
  return text;
}

}  // namespace cgphase::workloads
