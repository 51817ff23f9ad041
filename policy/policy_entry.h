// What the registry knows of one policy: its name, its parameters and its factory. Each row of
// registry.cpp is one entry.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "policy/policy.h"
#include "policy/policy_spec.h"

namespace cgphase {

// A number that a PolicySpec may set.
struct PolicyParameter {
  std::string_view name;
  double published = 0;  // value if the spec has none
  double least = 0, most = 0;
  bool whole = false;    // a count: fractions are refused
};

// The values of one policy's parameters: those of the spec, and defaults for the rest.
class PolicyValues {
 public:
  PolicyValues(std::span<const PolicyParameter> parameters, const PolicySpec& spec)
      : parameters_(parameters), spec_(&spec) {}
  // The parameter must exist.
  double at(std::string_view name) const;
  // The parameter must be `whole`.
  int count(std::string_view name) const { return static_cast<int>(at(name)); }

 private:
  std::span<const PolicyParameter> parameters_;
  const PolicySpec* spec_;  // outlives this
};

// The arguments of a factory. They are valid only during the call, except for the name.
struct PolicyArgs {
  std::string_view name;
  PolicyValues values;
  const LearnedState& prior;
  const PolicyEnvironment& environment;
};

struct PolicyEntry {
  std::string_view name;
  std::span<const PolicyParameter> parameters;
  // Errors: invalid, if the surroundings lack data that the policy needs.
  Result<std::unique_ptr<Policy>> (*make)(const PolicyArgs&);
};

// In the order of policy_names().
std::span<const PolicyEntry> policy_entries();
// Errors: invalid, with the nearest name.
Result<const PolicyEntry*> find_policy_entry(std::string_view name);
// Errors: invalid (an unknown parameter, with the nearest name; out of bounds; not a whole number).
Status check_parameter(const PolicyEntry& entry, std::string_view name, double value);

inline double seconds_at(const Observation& observation) {
  return std::chrono::duration<double>(observation.time.time_since_epoch()).count();
}

// The `make` of most policies: from the parameter values alone, or without arguments.
template <class Kind>
Result<std::unique_ptr<Policy>> make_of_values(const PolicyArgs& making) {
  return std::make_unique<Kind>(making.values);
}
template <class Kind>
Result<std::unique_ptr<Policy>> make_plain(const PolicyArgs&) {
  return std::make_unique<Kind>();
}

}  // namespace cgphase
