#include "tests/workloads/results_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "tests/workloads/results_summary.h"
#include "tests/workloads/results_verdict.h"

namespace cgphase::workloads {
namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr double kLevel = 0.01;  // share of samples over; one number represents a curve there

std::string percent(double share, int digits = 1) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}

std::string cell(const std::optional<double>& share) { return share ? percent(*share) : "-"; }

std::string title_of(Resource resource) { return resource == Resource::cpu ? "CPU" : "memory"; }


std::string ratios_text(const Ratios& ratios) {
  std::string text;
  for (const auto& ratio : ratios.at) text += (text.empty() ? "" : ", ") + cell(ratio);
  return text;
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
    const auto mean = [&](std::string_view measure) { return mean_of(measure, executions); };
    const ReplaySums total = total_of(executions);
    const std::string harm =
        resource == Resource::cpu
            ? percent(total.throttled_seconds / total.seconds, 2)
            : fmt::format("{} ({})", total.would_oom, total.would_oom_working_set);
    fmt::format_to(out, "| {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} |\n",
                   result.contender.policy.name, percent(mean("alloc_vs_static")),
                   percent(mean("above_oracle")), percent(mean("slack")),
                   percent(mean("samples_over"), 2), percent(mean("windows_clean")),
                   percent(mean("overrun_area"), 2), harm,
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
                 "\n`phase` on other phases and without earlier runs, as shipped (in brackets: at "
                 "1 %):\n\n| phases from "
                 "| CPU above oracle | CPU over | memory above oracle | memory over |\n"
                 "|---|---|---|---|---|\n");
  for (const Ablation& ablation : results.ablations) {
    std::string row = fmt::format("| {} |", ablation.name);
    for (const Resource resource : kResources) {
      const auto points = points_of(ablation.sweep, resource);
      if (points.empty() || !ablation.sweep.points.front().of(resource).measured()) {
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
    if (!any.of(resource).measured()) continue;
    policies(results, resource, out);
    matched(results, resource, out);
  }
  ablations(results, out);
  cold_start(results, out);
}

constexpr const char* kIntroduction =
    R"(# Results

What every policy would have done to recorded executions, and whether knowing phases pays. One
command makes this file, the same bytes each time:

    scripts/results TRACES

TRACES is a directory of public traces in the trace format: `ai4dl/` (AI4DL's examples and model),
`torch/`, `supercloud/` and `nezha/`; without it only our own recordings (tests/data) are replayed.

Closed loop as docs/internals/lab.md defines it: a decision at each sample, and a guard that raises
100 ms after demand came within 5 % of the limit. All figures are weighted by job.

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
  text += summary_text(sets);
  goals(sets, out);
  for (const SetResults& results : sets) one_set(results, out);
  return text;
}

}  // namespace cgphase::workloads
