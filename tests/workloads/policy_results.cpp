#include "tests/workloads/policy_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lab/replay/contest.h"
#include "lab/replay/sweep_plan.h"
#include "policy/policy.h"

namespace cgphase::workloads {
namespace {

constexpr const char* kOurs[] = {"phase", "proactive"};
constexpr const char* kAi4dl[] = {"ai4dl-phase", "ai4dl-phase-compat"};
constexpr const char* kColdStart[] = {"static", "hold", "phase", "proactive"};

ReplaySettings settings_of(const ResultSet& set) {
  ReplaySettings settings;
  settings.loop.enabled = true;
  settings.window_seconds = set.window_seconds;
  return settings;
}

bool is_ai4dl(std::string_view name) { return name.starts_with("ai4dl-"); }

// Replays that run together, and the places of their results.
class Plays {
 public:
  Plays(ReplayInput input, const ResultSet& set)
      : input_(std::move(input)), settings_(settings_of(set)) {}

  const ReplaySettings& settings() const { return settings_; }
  const ReplayInput& input() const { return input_; }

  void add(std::string_view policy, ContenderResult& result) {
    const Entrant entrant{.contender = {.policy = {.name = std::string(policy)}},
                          .settings = settings_};
    singles_.emplace_back(contest_.enter(entrant), &result);
  }
  void add(const SweepPlan& plan, Sweep& sweep) {
    sweeps_.push_back({plan, contest_.enter_all(plan.entrants), &sweep});
  }
  Status run() {
    contest_.run(input_);
    for (const auto& [place, result] : singles_) {
      if (!contest_.result(place)) return std::unexpected(contest_.result(place).error());
      *result = *contest_.result(place);
    }
    for (const PlannedSweep& planned : sweeps_)
      if (Status swept = collect(planned); !swept) return swept;
    return {};
  }

 private:
  struct PlannedSweep {
    SweepPlan plan;
    std::vector<std::size_t> places;
    Sweep* sweep;
  };
  Status collect(const PlannedSweep& planned) const {
    planned.sweep->name = planned.plan.name;
    planned.sweep->shipped = planned.plan.shipped;
    for (std::size_t i = 0; i < planned.places.size(); ++i) {
      const auto& result = contest_.result(planned.places[i]);
      if (!result) return std::unexpected(result.error());
      planned.sweep->points.push_back({planned.plan.names[i], sums_of(*result, Resource::cpu),
                                       sums_of(*result, Resource::memory)});
    }
    return {};
  }

  ReplayInput input_;
  ReplaySettings settings_;
  Contest contest_;
  std::vector<std::pair<std::size_t, ContenderResult*>> singles_;
  std::vector<PlannedSweep> sweeps_;
};

ReplayInput input_of(const ResultSet& set, std::shared_ptr<const PhaseEngine> engine) {
  return {.executions = set.executions, .training = set.training, .engine = std::move(engine),
          .compat_engine = nullptr};
}

Status play_all(const ResultSet& set, const ResultEngines& engines, SetResults& results) {
  Plays plays(input_of(set, engines.ours), set);
  ReplayInput with_statistics = input_of(set, engines.ours);
  with_statistics.compat_engine = engines.ai4dl;
  if (set.training.empty()) with_statistics.training = set.executions;
  Plays ai4dl(std::move(with_statistics), set);
  const auto names = policy_names();
  results.shipped.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_ai4dl(names[i]))
      plays.add(names[i], results.shipped[i]);
    else if (engines.ai4dl || names[i] == kAi4dl[0])
      ai4dl.add(names[i], results.shipped[i]);
  }
  plays.add(control_plan(plays.settings()), results.controls);
  results.ours.resize(std::size(kOurs));
  for (std::size_t i = 0; i < std::size(kOurs); ++i)
    plays.add(sweep_plan({.name = kOurs[i]}, plays.settings()), results.ours[i]);
  results.ai4dl.resize(engines.ai4dl ? 2 : 1);
  for (std::size_t i = 0; i < results.ai4dl.size(); ++i)
    ai4dl.add(sweep_plan({.name = kAi4dl[i]}, ai4dl.settings()), results.ai4dl[i]);
  if (Status played = plays.run(); !played) return played;
  return ai4dl.run();
}

// The same executions, none of which learns from another.
ReplayInput unrelated(ReplayInput input) {
  input.training.clear();
  for (std::size_t i = 0; i < input.executions.size(); ++i)
    input.executions[i].service = fmt::format("unrelated {}", i);
  return input;
}

Status play_ablations(const ResultSet& set, const ResultEngines& engines, SetResults& results) {
  const auto play = [&](const std::string& name, ReplayInput input) {
    Ablation& ablation = results.ablations.emplace_back(name, Sweep{});
    Plays plays(std::move(input), set);
    plays.add(sweep_plan({.name = kOurs[0]}, plays.settings()), ablation.sweep);
    return plays.run();
  };
  for (const auto& [name, engine] : engines.ablations)
    if (Status played = play(name, input_of(set, engine)); !played) return played;
  return play("no earlier runs, trained CRBM (shipped)", unrelated(input_of(set, engines.ours)));
}

Execution beginning_of(const Execution& execution) {
  Execution begun = execution;
  const auto& rows = execution.rows;
  const auto late = std::ranges::find_if(rows, [&](const TraceRow& row) {
    return std::chrono::duration<double>(row.time - rows.front().time).count() > kColdStartSeconds;
  });
  begun.rows.assign(rows.begin(), late);
  return begun;
}

// Replays the beginning of each execution, with only the first training execution known.
Status play_cold_start(const ResultSet& set, const ResultEngines& engines, SetResults& results) {
  if (set.training.empty()) return {};
  ReplayInput input{.executions = {}, .training = {set.training.front()}, .engine = engines.ours,
                    .compat_engine = nullptr};
  for (const Execution& execution : set.executions)
    input.executions.push_back(beginning_of(execution));
  Plays plays(std::move(input), set);
  results.cold_start.resize(std::size(kColdStart));
  for (std::size_t i = 0; i < std::size(kColdStart); ++i) {
    results.cold_start[i].first = kColdStart[i];
    plays.add(kColdStart[i], results.cold_start[i].second);
  }
  return plays.run();
}

}  // namespace

Result<SetResults> play_set(const ResultSet& set, const ResultEngines& engines) {
  SetResults results;
  results.set = &set;
  for (const auto play : {play_all, play_ablations, play_cold_start})
    if (Status played = play(set, engines, results); !played)
      return std::unexpected(played.error());
  return results;
}

}  // namespace cgphase::workloads
