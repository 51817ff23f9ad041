// Which policy, with which parameters: `hold`, or `hold:window=120,margin=1.05`.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cgphase {

// A name of policy_names() and values for some of that policy's parameters; the rest are as
// published.
struct PolicySpec {
  std::string name;
  std::map<std::string, double, std::less<>> parameters;

  friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

inline constexpr std::size_t kMaxPolicySpecBytes = 1000;  // longer text is refused

// NAME or NAME:KEY=NUMBER,... . Errors: invalid (no such policy or parameter, naming the nearest;
// not a number; out of the parameter's bounds; a parameter twice).
Result<PolicySpec> parse_policy_spec(std::string_view text);
// The shortest text that parses to `spec`.
std::string to_string(const PolicySpec& spec);

// What of a container's demand an oracle knows: its samples in ascending time. An absent value was
// not measured.
struct FutureDemand {
  using Values = std::vector<std::optional<double>>;
  std::vector<double> seconds;  // same clock as Observation::time
  Values cpu_cores;             // mean of the interval that ends there
  Values memory_bytes;          // need at that moment
};

// Mean and deviation of the demand in one phase, over all containers of the training data
// (AI4DL's published statistics).
struct PhaseStatistics {
  double count = 0;
  double cpu_mean_cores = 0, cpu_deviation_cores = 0;
  double memory_mean_bytes = 0, memory_deviation_bytes = 0;
};

// As shipped, and what the user may ask for.
inline constexpr double kShippedRisk = 0.001, kLeastRisk = 1e-6, kMostRisk = 0.5;

// What a policy is made for, besides its own parameters.
struct PolicySurroundings {
  // How far a policy must look ahead, from what the machine can do; both in seconds.
  double cpu_horizon_seconds = 10;     // until a change is seen and the CPU limit raised
  double memory_horizon_seconds = 60;  // between two lowerings of memory
  double window_seconds = 600;  // of the policies that look at a window
  // From this share of a limit on it is raised, whatever the policy says: by the guard of replay,
  // by the rails of the daemon.
  double guard_threshold = 0.95;
  // CPU may take so many times the risk: too little of it costs milliseconds, not the process.
  double cpu_risk_factor = 1;
  double risk = kShippedRisk;  // share of the samples that may want more: the user's knob
  std::optional<double> job_seconds;  // how long a run lasts, for half-lives tuned to it
  std::shared_ptr<const std::vector<PhaseStatistics>> phase_statistics;  // by index; null: none
  std::shared_ptr<const FutureDemand> future;  // null outside of replay: there is no oracle then
};

}  // namespace cgphase
