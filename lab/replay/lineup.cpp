#include "lab/replay/lineup.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/replay/sweep_plan.h"
#include "lab/replay/words.h"
#include "policy/policy.h"

namespace cgphase {
namespace {

constexpr std::string_view kAll = "all";

void add_once(std::vector<PolicySpec>& policies, const PolicySpec& policy) {
  if (std::ranges::find(policies, policy) == policies.end()) policies.push_back(policy);
}

void add_known(std::span<const std::string_view> names, std::vector<PolicySpec>& policies) {
  const auto known = policy_names();
  for (const std::string_view name : names)
    if (std::ranges::find(known, name) != known.end())
      add_once(policies, {std::string(name), {}});
}

Status add_policies(const LineupOptions& options, Lineup& lineup) {
  if (options.policies.empty()) add_known(kDefaultPolicies, lineup.policies);
  for (const std::string& word : options.policies) {
    if (word == kAll) {
      lineup.all = true;
      add_known(policy_names(), lineup.policies);
      continue;
    }
    const auto policies = parse_policies(word);
    if (!policies) return failure(ErrorKind::invalid, "--policy: " + policies.error().text);
    for (const PolicySpec& policy : *policies) add_once(lineup.policies, policy);
  }
  if (lineup.policies.size() <= kMostPolicies) return {};
  return failure(ErrorKind::invalid, fmt::format("--policy: more than {}", kMostPolicies));
}

void enter(Lineup& lineup, const Entrant& entrant, bool first_margin) {
  std::string name =
      to_string(entrant.contender.policy) + (entrant.settings.safety ? "+rails" : "");
  const std::size_t place = lineup.entrants.size();
  lineup.entrants.push_back(entrant);
  lineup.names.push_back(fmt::format("{}@{:g}", name, 100 * entrant.contender.margin));
  lineup.named.push_back(place);
  if (!first_margin) return;
  lineup.names.push_back(std::move(name));
  lineup.named.push_back(place);
}

}  // namespace

Result<Lineup> line_up(const LineupOptions& options, const ReplaySettings& settings) {
  Lineup lineup;
  if (const Status added = add_policies(options, lineup); !added)
    return std::unexpected(added.error());
  const bool stepped = settings.step_seconds > 0;
  const bool rails = !options.bare && (options.rails || !stepped) &&
                     std::ranges::any_of(lineup.policies, is_ours);
  if (rails && stepped)
    return failure(ErrorKind::invalid,
                   "--step: the safety rules decide at each row, as the daemon does; leave out "
                   "--rails");
  ReplaySettings with_rails = settings;
  with_rails.safety = true;
  with_rails.loop.growth_seconds = static_cast<double>(settings.rules.at_risk_growth.count());
  if (!options.threshold_given) with_rails.loop.guard_threshold = settings.rules.at_risk_ratio;
  for (const PolicySpec& policy : lineup.policies)
    for (const double margin : options.margins) {
      const bool first = margin == options.margins.front();
      enter(lineup, {{policy, margin}, settings}, first);
      if (rails && first && is_ours(policy))
        enter(lineup, {{policy, 0}, with_rails}, true);
    }
  return lineup;
}

std::vector<std::size_t> pictured(const Lineup& lineup, std::size_t most) {
  const auto rank = [](const PolicySpec& policy) {
    return is_ours(policy) ? 0 : policy.name == "hold" ? 1 : is_fixed(policy) ? 3 : 2;
  };
  std::vector<std::size_t> chosen;
  for (int wanted = 0; wanted <= 3; ++wanted)
    for (std::size_t i = 0; i < lineup.entrants.size(); ++i) {
      const auto& [policy, margin] = lineup.entrants[i].contender;
      const bool first = margin == lineup.entrants.front().contender.margin;
      if (rank(policy) != wanted || !(first || lineup.entrants[i].settings.safety)) continue;
      if (wanted < 3 || chosen.empty()) chosen.push_back(i);
    }
  chosen.resize(std::min(chosen.size(), most));
  return chosen;
}

}  // namespace cgphase
