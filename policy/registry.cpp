#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policy/hold_policy.h"
#include "policy/phase_policy.h"
#include "policy/policy.h"
#include "policy/sliding_policy.h"
#include "policy/static_policy.h"

namespace cgphase {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const nlohmann::json& prior,
                                  const PolicySurroundings& surroundings);
};

template <class PhaseFree>
std::unique_ptr<Policy> make_phase_free(const nlohmann::json&, const PolicySurroundings&) {
  return std::make_unique<PhaseFree>();
}

constexpr std::array<Entry, 4> kPolicies = {{
    {"static", make_phase_free<StaticPolicy>},
    {"sliding", make_phase_free<SlidingPolicy>},
    {"hold", make_phase_free<HoldPolicy>},
    {"phase",
     [](const nlohmann::json& prior,
        const PolicySurroundings& surroundings) -> std::unique_ptr<Policy> {
       return std::make_unique<PhasePolicy>(prior, surroundings);
     }},
}};

}  // namespace

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

Result<std::unique_ptr<Policy>> make_policy(const PolicySpec& spec, const nlohmann::json& prior,
                                            const PolicySurroundings& surroundings) {
  return make_policy(spec.name, prior, surroundings);
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const nlohmann::json& prior,
                                            const PolicySurroundings& surroundings) {
  for (const Entry& entry : kPolicies)
    if (entry.name == name) return entry.make(prior, surroundings);
  const auto names = policy_names();
  const std::string_view near = nearest(name, names);
  std::string text = fmt::format("policy \"{}\": there is no such policy", escape_name(name));
  text += near.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                       : fmt::format("; did you mean \"{}\"?", near);
  return failure(ErrorKind::invalid, std::move(text));
}

nlohmann::json merge_learned(const nlohmann::json& earlier, const nlohmann::json& run) {
  return merge_phase_records(earlier, run);
}

}  // namespace cgphase
