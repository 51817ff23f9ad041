#include "tests/workloads/results_summary.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "tests/workloads/results_verdict.h"

namespace cgphase::workloads {
namespace {

constexpr double kLessThanControls = 0.9;  // above oracle-max, of the controls
constexpr double kMoreOnServices = 0.02;   // of what the controls allocate
constexpr double kWritesOfHold = 0.5;
constexpr double kColdStartOfOracle = 1.25;
constexpr double kLessThanAi4dl = 0.7;
constexpr double kSame = 0.005;  // of the user's limit: no difference worth a word

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

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

// As shipped, else where the controls can be had first.
std::optional<double> ratio_to_controls(const Verdict& verdict) {
  if (verdict.at_shipped) return verdict.at_shipped;
  for (const auto& ratio : verdict.controls.at)
    if (ratio) return ratio;
  return std::nullopt;
}

std::optional<bool> below(const std::optional<double>& value, double most) {
  return value ? std::optional(*value <= most) : std::nullopt;
}

std::string number(const std::optional<double>& ratio) { return ratio ? percent(*ratio) : "-"; }

// What ours allocates more than the controls where both are as seldom over, of what they allocate.
std::optional<double> more_than_controls(const SetResults& results, Resource resource,
                                         const Verdict& verdict) {
  if (!verdict.ours_above || !verdict.controls_above) return std::nullopt;
  const ContenderResult* oracle = find(results, "static");
  if (oracle == nullptr) return std::nullopt;
  const ReplayMeasures mean = mean_measures(sums_of(*oracle, resource));
  const double oracle_share = mean.alloc_vs_static - mean.above_oracle;
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

const Ablation* find_ablation(const SetResults& results, std::string_view name) {
  for (const Ablation& ablation : results.ablations)
    if (ablation.name.starts_with(name)) return &ablation;
  return nullptr;
}

// Where the shipped phases allocate less, more, or the same with no more samples over than as
// shipped; each at the best of its risks.
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

}  // namespace

std::string summary_text(std::span<const SetResults> sets) {
  std::string text;
  for (const std::string_view policy : {"phase", "proactive"})
    text += goals_of(sets, policy) + cold_starts(sets, policy) + "\n";
  text += "What phases add to `phase`, each at the best of its risks with no more samples over "
          "than as shipped:\n\n";
  text += against_ablation(sets, "one phase", "one phase for everything");
  text += against_ablation(sets, "k-means", "k-means of the features, without a CRBM");
  text += against_ablation(sets, "CRBM without", "a CRBM that was not trained");
  return text + "\n";
}

}  // namespace cgphase::workloads
