#include "tests/workloads/results_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "policy/policy.h"
#include "tests/workloads/results_verdict.h"

namespace cgphase::workloads {
namespace {

constexpr double kLessThanControls = 0.9;  // above oracle-max, of the controls
constexpr double kMoreOnServices = 0.02;   // of what the controls allocate
constexpr double kWritesOfHold = 0.5;
constexpr double kColdStartOfOracle = 1.25;
constexpr double kLessThanAi4dl = 0.7;
constexpr double kSame = 0.005;  // of the user's limit; smaller differences are not reported

std::string whole_percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// Cases of one goal: met, missed with the number that missed it, or without anything to compare.
struct Tally {
  int met = 0, cases = 0;
  std::string missed, without;

  void add(std::optional<bool> good, const std::string& name, const std::string& number) {
    if (!good) {
      without += (without.empty() ? "" : ", ") + name;
      return;
    }
    cases += 1;
    met += *good ? 1 : 0;
    if (!*good) missed += (missed.empty() ? "" : ", ") + name + " (" + number + ")";
  }
  std::string text() const {
    std::string text = fmt::format("{} of {}", met, cases);
    if (!missed.empty()) text += "; not " + missed;
    if (!without.empty()) text += "; nothing to compare with: " + without;
    return text + ".";
  }
};

std::string case_name(const SetResults& results, Resource resource) {
  return results.set->name + (resource == Resource::cpu ? " CPU" : " memory");
}

using EachVerdict = std::function<void(const SetResults&, Resource, const Verdict&)>;

// The policy of that name on all sets.
void each_verdict(std::span<const SetResults> sets, std::string_view policy,
                  const EachVerdict& take) {
  for (const SetResults& results : sets)
    for (const Sweep& ours : results.ours)
      for (const Resource resource : kResources) {
        if (ours.name != policy) continue;
        const auto verdict = verdict_of(results, ours, resource);
        if (verdict) take(results, resource, *verdict);
      }
}

// As shipped, else at the first level that the controls reach.
std::optional<double> ratio_to_controls(const Verdict& verdict) {
  if (verdict.at_shipped) return verdict.at_shipped;
  for (const auto& ratio : verdict.controls.at)
    if (ratio) return ratio;
  return std::nullopt;
}

std::optional<bool> below(const std::optional<double>& value, double most) {
  return value ? std::optional(*value <= most) : std::nullopt;
}

std::string number(const std::optional<double>& ratio) {
  return ratio ? whole_percent(*ratio) : "-";
}

// How much more ours allocates than the controls at an equal share of samples over, as a share of
// the controls' allocation.
std::optional<double> more_than_controls(const SetResults& results, Resource resource,
                                         const Verdict& verdict) {
  if (!verdict.ours_above || !verdict.controls_above) return std::nullopt;
  const ContenderResult* oracle = find(results, "static");
  if (oracle == nullptr) return std::nullopt;
  const std::vector<ReplaySums> executions = sums_of(*oracle, resource);
  const double oracle_share =
      mean_of("alloc_vs_static", executions) - mean_of("above_oracle", executions);
  return (*verdict.ours_above - *verdict.controls_above) / (oracle_share + *verdict.controls_above);
}

std::string goals_of(std::span<const SetResults> sets, std::string_view policy) {
  Tally jobs, services, writes, ai4dl;
  std::int64_t would_oom = 0;
  each_verdict(sets, policy, [&](const SetResults& results, Resource resource,
                                 const Verdict& verdict) {
    const std::string name = case_name(results, resource);
    if (results.set->service) {
      const auto more = more_than_controls(results, resource, verdict);
      services.add(below(more, kMoreOnServices), name, more ? fmt::format("{:+.0f} %", 100 * *more)
                                                            : "");
    } else {
      const auto ratio = ratio_to_controls(verdict);
      jobs.add(below(ratio, kLessThanControls), name, number(ratio));
    }
    writes.add(verdict.writes_ratio <= kWritesOfHold, name,
               fmt::format("{:.2f}", verdict.writes_ratio));
    const auto& at_one_percent = verdict.ai4dl.at[1];
    ai4dl.add(below(at_one_percent, kLessThanAi4dl), name, number(at_one_percent));
    would_oom += verdict.would_oom;
  });
  std::string text = fmt::format("`{}`, as shipped:\n\n", policy);
  text += fmt::format("- Batch and training jobs, at least 10 % less above oracle-max than the "
                      "controls at as many samples over: {}\n", jobs.text());
  text += fmt::format("- Services, at most 2 % more than the controls: {}\n", services.text());
  text += fmt::format("- Windows in which memory would have run out: {}.\n", would_oom);
  text += fmt::format("- At most half of the writes of `hold`: {}\n", writes.text());
  text += fmt::format("- At least 30 % less above oracle-max than AI4DL's policies, each swept, at "
                      "1 % over: {}\n", ai4dl.text());
  return text;
}

std::string cold_starts(std::span<const SetResults> sets, std::string_view policy) {
  Tally tally;
  for (const SetResults& results : sets)
    for (const auto& [name, result] : results.cold_start)
      for (const Resource resource : kResources) {
        const ReplaySums total = total_of(sums_of(result, resource));
        if (name != policy || !(total.oracle > 0)) continue;
        const double ratio = total.allocated / total.oracle;
        tally.add(ratio <= kColdStartOfOracle, case_name(results, resource),
                  fmt::format("{:.2f}", ratio));
      }
  return fmt::format("- First five minutes after one earlier run, at most 1.25 x oracle-max: {}\n",
                     tally.text());
}

// One missed goal, with the facts of the data that explain it.
void missed(const SetResults& results, const Sweep& ours, Resource resource, const char* goal,
            const std::string& came_out, std::string& rows) {
  const SweptResource& shipped = ours.points[ours.shipped.value_or(0)].of(resource);
  const ReplaySums& total = shipped.total;
  const auto points = points_of(ours, resource);
  const auto cheapest = cheapest_within(points, 1);
  const ContenderResult* hold = find(results, "hold");
  if (total.samples == 0 || !cheapest || hold == nullptr) return;
  const auto executions = static_cast<double>(shipped.by_execution.size());
  const double samples = static_cast<double>(total.samples) / executions;
  rows += fmt::format(
      "| {} | {} | {} | {:.0f} x {:.0f} | {:.2f} % | {:.0f} % | {:.1f} % at {:.2f} % ({}) | "
      "{:.0f}, {:.0f} |\n",
      goal, case_name(results, resource), came_out, executions, samples,
      100 / (samples * executions), std::min(100.0, 100 * kWarmUpSamples / samples),
      100 * points[*cheapest].cost, 100 * points[*cheapest].violation,
      ours.points[*cheapest].name, static_cast<double>(total.writes_up + total.writes_down),
      writes_of(sums_of(*hold, resource)));
}

std::string missed_goals(std::span<const SetResults> sets, std::string_view policy) {
  std::string rows;
  for (const SetResults& results : sets)
    for (const Sweep& ours : results.ours)
      for (const Resource resource : kResources) {
        if (ours.name != policy) continue;
        const auto verdict = verdict_of(results, ours, resource);
        if (!verdict) continue;
        const auto row = [&](const char* goal, const std::string& came_out) {
          missed(results, ours, resource, goal, came_out, rows);
        };
        const auto ratio = ratio_to_controls(*verdict);
        const auto more = more_than_controls(results, resource, *verdict);
        if (results.set->service && more && *more > kMoreOnServices)
          row("controls, services", fmt::format("{:+.0f} %", 100 * *more));
        if (!results.set->service && ratio && *ratio > kLessThanControls)
          row("controls, jobs", whole_percent(*ratio));
        if (verdict->writes_ratio > kWritesOfHold)
          row("writes", fmt::format("{:.2f}", verdict->writes_ratio));
        if (const auto& ai4dl = verdict->ai4dl.at[1]; ai4dl && *ai4dl > kLessThanAi4dl)
          row("AI4DL at 1 %", whole_percent(*ai4dl));
      }
  return rows;
}

const Ablation* find_ablation(const SetResults& results, std::string_view name) {
  for (const Ablation& ablation : results.ablations)
    if (ablation.name.starts_with(name)) return &ablation;
  return nullptr;
}

// Names the sets on which the shipped phases allocate less or more than other phases, and counts
// equal ones. Each is at the best of its risks with no more samples over than as shipped.
std::string against_ablation(std::span<const SetResults> sets, std::string_view other,
                             std::string_view what) {
  std::string better, worse;
  int same = 0;
  for (const SetResults& results : sets)
    for (const Resource resource : kResources) {
      const Ablation* shipped = find_ablation(results, "trained CRBM (shipped)");
      const Ablation* lesser = find_ablation(results, other);
      if (shipped == nullptr || lesser == nullptr) continue;
      const auto ours = points_of(shipped->sweep, resource);
      const auto theirs = points_of(lesser->sweep, resource);
      if (ours.empty() || theirs.empty()) continue;
      const double violation = ours[shipped->sweep.shipped.value_or(0)].violation;
      const auto best = cheapest_within(ours, violation);
      const auto equal = cheapest_within(theirs, violation);
      if (!best) continue;
      const double gain = equal ? theirs[*equal].cost - ours[*best].cost : 1;
      std::string& list = gain > 0 ? better : worse;
      if (std::abs(gain) < kSame) same += 1;
      else list += (list.empty() ? "" : ", ") + case_name(results, resource);
    }
  const auto or_nowhere = [](const std::string& list) { return list.empty() ? "nowhere" : list; };
  return fmt::format("- Against {}: allocates less on {}; more on {}; within half a point on {}.\n",
                     what, or_nowhere(better), or_nowhere(worse), same);
}

constexpr const char* kLimits =
    R"(### What limits it

Each goal that `phase` misses, with its facts: executions and their mean number of samples;
the share that one sample over is of all; the share of a first run in which no policy may say
anything yet; the least that any of the risks allocates above oracle-max, and how much was over;
writes of ours and of `hold`.

| goal | case | came out | runs x samples | one sample | ten samples | cheapest risk | writes |
|---|---|---|---|---|---|---|---|
)";

constexpr const char* kReasons = R"(
- Controls: their envelope is the best of some hundreds on the scored executions. If one sample over
  is a large share, one or two samples decide a level of 0.1 or 1 %, and the best of hundreds has
  that luck. A first run has no statistics, so a bound from ten samples must be wide.
- Recorded runs of one program differ in size by a factor of two. Until a new run has filled a
  window, which is most of the run, the largest earlier run decides at every risk.
- Writes: the first write leaves the original limit, so each execution has at least one. If `hold`
  writes rarely, half of its writes is hardly more.
- AI4DL: it changes the limit with each change of phase, with many times the writes, without room
  for the fast path and from the first sample on. On most public traces its statistics come from the
  scored runs.
- Cold start: one earlier run gives one peak, and a run that needs less detects that late.
)";

std::string limits_text(const std::string& rows) {
  return rows.empty() ? "" : kLimits + rows + kReasons + "\n";
}

}  // namespace

std::string summary_text(std::span<const SetResults> sets) {
  std::string text;
  for (const std::string_view policy : {"phase", "proactive"})
    text += goals_of(sets, policy) + cold_starts(sets, policy) + "\n";
  text += "The value of phases and earlier runs for `phase`, each at the best of its risks with no "
          "more samples over than as shipped:\n\n";
  text += against_ablation(sets, "one phase", "one phase for everything");
  text += against_ablation(sets, "k-means", "k-means of the features, without a CRBM");
  text += against_ablation(sets, "CRBM without", "a CRBM that was not trained");
  text += against_ablation(sets, "no earlier runs", "no earlier runs");
  return text + "\n" + limits_text(missed_goals(sets, "phase"));
}

}  // namespace cgphase::workloads
