#include <array>
#include <fmt/format.h>

#include "base/text.h"
#include "policy/baselines/adaptive_policy.h"
#include "policy/baselines/ai4dl_policy.h"
#include "policy/baselines/autopilot_policy.h"
#include "policy/baselines/hold_policy.h"
#include "policy/baselines/oracle_policy.h"
#include "policy/baselines/segment_policy.h"
#include "policy/baselines/sliding_policy.h"
#include "policy/baselines/static_policy.h"
#include "policy/baselines/theta_scan_policy.h"
#include "policy/baselines/vpa_policy.h"
#include "policy/phase/phase_policy.h"
#include "policy/policy.h"
#include "policy/policy_entry.h"

namespace cgphase {
namespace {

Result<std::unique_ptr<Policy>> make_phase(const PolicyArgs& making) {
  return std::make_unique<PhasePolicy>(making.prior, making.environment);
}

Result<std::unique_ptr<Policy>> make_proactive(const PolicyArgs& making) {
  return std::make_unique<PhasePolicy>(making.prior, making.environment,
                                       PhasePolicy::Foresight::proactive);
}

constexpr std::array kPolicies = {
    PolicyEntry{"static", {}, make_plain<StaticPolicy>},
    PolicyEntry{"oracle-max", {}, make_oracle_max},
    PolicyEntry{"oracle-2sd", kOracleDeviations, make_oracle_2sd},
    PolicyEntry{"adaptive-max", {}, make_adaptive_max},
    PolicyEntry{"adaptive-2sd", kAdaptiveDeviations, make_adaptive_2sd},
    PolicyEntry{"vpa", kVpaParameters, make_vpa},
    PolicyEntry{"vpa-tuned", kVpaTunedParameters, make_vpa_tuned},
    PolicyEntry{"autopilot", kAutopilotParameters, make_autopilot},
    PolicyEntry{"autopilot-tuned", kAutopilotTunedParameters, make_autopilot_tuned},
    PolicyEntry{"ai4dl-phase", kAi4dlParameters, make_ai4dl},
    PolicyEntry{"ai4dl-phase-compat", kAi4dlParameters, make_ai4dl},
    PolicyEntry{"theta-scan", kThetaScanParameters, make_of_values<ThetaScanPolicy>},
    PolicyEntry{"k-segments", kSegmentParameters, make_k_segments},
    PolicyEntry{"ks-plus", kSegmentParameters, make_ks_plus},
    PolicyEntry{"sliding", kSlidingParameters, make_of_values<SlidingPolicy>},
    PolicyEntry{"hold", kHoldParameters, make_of_values<HoldPolicy>},
    PolicyEntry{"phase", {}, make_phase},
    PolicyEntry{"proactive", {}, make_proactive},
};

}  // namespace

std::span<const PolicyEntry> policy_entries() { return kPolicies; }

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const PolicyEntry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

Result<const PolicyEntry*> find_policy_entry(std::string_view name) {
  for (const PolicyEntry& entry : kPolicies)
    if (entry.name == name) return &entry;
  const auto names = policy_names();
  const std::string_view near = nearest(name, names);
  std::string text = fmt::format("there is no policy \"{}\"", escape_name(name));
  text += near.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                       : fmt::format("; did you mean \"{}\"?", near);
  return failure(ErrorKind::invalid, std::move(text));
}

Result<std::unique_ptr<Policy>> make_policy(const PolicySpec& spec, const LearnedState& prior,
                                            const PolicyEnvironment& environment) {
  const auto entry = find_policy_entry(spec.name);
  if (!entry) return std::unexpected(entry.error());
  for (const auto& [name, value] : spec.parameters)
    if (Status good = check_parameter(**entry, name, value); !good)
      return std::unexpected(good.error());
  return (*entry)->make({(*entry)->name, {(*entry)->parameters, spec}, prior, environment});
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const LearnedState& prior,
                                            const PolicyEnvironment& environment) {
  return make_policy(PolicySpec{std::string(name), {}}, prior, environment);
}

Status check_live_policy(std::string_view text) {
  const auto spec = parse_policy_spec(text);
  if (!spec) return std::unexpected(spec.error());
  const auto made = make_policy(*spec);
  return made ? Status{} : std::unexpected(made.error());
}

}  // namespace cgphase
