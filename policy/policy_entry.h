// What the registry knows of one policy: its name, its parameters and how one is made. Each row of
// registry.cpp is one.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "base/result.h"
#include "policy/policy.h"
#include "policy/policy_spec.h"

namespace cgphase {

// A number that a PolicySpec may set.
struct PolicyParameter {
  std::string_view name;
  double published = 0;  // its value where the spec gives none
  double least = 0, most = 0;
  bool whole = false;    // a count: fractions are refused
};

// The values of one policy's parameters: those of the spec, the published ones for the rest.
class PolicyValues {
 public:
  PolicyValues(std::span<const PolicyParameter> parameters, const PolicySpec& spec)
      : parameters_(parameters), spec_(&spec) {}
  // Of a parameter that the policy has.
  double at(std::string_view name) const;
  // Of one that is `whole`.
  int count(std::string_view name) const { return static_cast<int>(at(name)); }

 private:
  std::span<const PolicyParameter> parameters_;
  const PolicySpec* spec_;  // outlives this
};

// For the time of the making only; the name is for ever.
struct PolicyMaking {
  std::string_view name;
  PolicyValues values;
  const nlohmann::json& prior;
  const PolicySurroundings& surroundings;
};

struct PolicyEntry {
  std::string_view name;
  std::span<const PolicyParameter> parameters;
  // Errors: invalid, where the surroundings lack what it needs.
  Result<std::unique_ptr<Policy>> (*make)(const PolicyMaking&);
  // Adds what a run learned to what earlier ones did; null for policies that keep nothing.
  nlohmann::json (*merge)(const nlohmann::json& earlier, const nlohmann::json& run) = nullptr;
};

// In the order of policy_names().
std::span<const PolicyEntry> policy_entries();
// Errors: invalid, naming the nearest.
Result<const PolicyEntry*> find_policy_entry(std::string_view name);
// Errors: invalid (a parameter that it lacks, naming the nearest; out of bounds; no whole number).
Status check_parameter(const PolicyEntry& entry, std::string_view name, double value);

inline double seconds_at(const Observation& observation) {
  return std::chrono::duration<double>(observation.time.time_since_epoch()).count();
}

// The `make` of most: from the values of the parameters alone, or none at all.
template <class Kind>
Result<std::unique_ptr<Policy>> make_of_values(const PolicyMaking& making) {
  return std::make_unique<Kind>(making.values);
}
template <class Kind>
Result<std::unique_ptr<Policy>> make_plain(const PolicyMaking&) {
  return std::make_unique<Kind>();
}

}  // namespace cgphase
