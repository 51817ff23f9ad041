#include "lab/replay/sweep_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/baselines/control_sweep.h"

namespace cgphase {
namespace {

constexpr double kRisks[] = {0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1};
constexpr double kMargins[] = {-0.3, -0.2, -0.1, -0.05, 0,    0.05, 0.1,
                               0.15, 0.2,  0.3,  0.5,   0.75, 1};

void add(SweepPlan& plan, const Entrant& entrant, std::string name) {
  plan.entrants.push_back(entrant);
  plan.names.push_back(std::move(name));
}

void sweep_risk(SweepPlan& plan, const PolicySpec& policy, const ReplaySettings& settings) {
  std::vector<double> risks(std::begin(kRisks), std::end(kRisks));
  if (std::ranges::find(risks, settings.risk) == risks.end()) risks.push_back(settings.risk);
  std::ranges::sort(risks);
  for (const double risk : risks) {
    if (risk == settings.risk) plan.shipped = plan.entrants.size();
    ReplaySettings at = settings;
    at.risk = risk;
    add(plan, {{policy, 0}, at}, fmt::format("risk {:.6g} %", 100 * risk));
  }
}

void sweep_margin(SweepPlan& plan, const PolicySpec& policy, const ReplaySettings& settings) {
  for (const double margin : kMargins) {
    if (margin == 0) plan.shipped = plan.entrants.size();
    add(plan, {{policy, margin}, settings}, fmt::format("margin {:+.6g} %", 100 * margin));
  }
}

}  // namespace

bool is_ours(const PolicySpec& policy) {
  return policy.name == "phase" || policy.name == "proactive";
}

bool is_fixed(const PolicySpec& policy) {
  return policy.name == "static" || policy.name.starts_with("oracle-");
}

SweepPlan sweep_plan(const PolicySpec& policy, const ReplaySettings& settings) {
  SweepPlan plan{to_string(policy), {}, {}, {}};
  if (is_ours(policy)) {
    sweep_risk(plan, policy, settings);
  } else if (is_fixed(policy)) {
    plan.shipped = 0;
    add(plan, {{policy, 0}, settings}, "as it is");
  } else {
    sweep_margin(plan, policy, settings);
  }
  return plan;
}

SweepPlan control_plan(const ReplaySettings& settings) {
  SweepPlan plan{std::string(kControls), {}, {}, {}};
  for (const PolicySpec& control : control_sweep())
    add(plan, {{control, 0}, settings}, to_string(control));
  return plan;
}

}  // namespace cgphase
