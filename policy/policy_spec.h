// A policy and its parameters as text: `hold`, or `hold:window=120,margin=1.05`.
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

// A name of policy_names() and values for some of that policy's parameters. The others have their
// defaults.
struct PolicySpec {
  std::string name;
  std::map<std::string, double, std::less<>> parameters;

  friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

inline constexpr std::size_t kMaxPolicySpecBytes = 1000;  // longer text is refused

// Parses NAME or NAME:KEY=NUMBER,... . Errors: invalid (an unknown policy or parameter, with the
// nearest name; not a number; out of the parameter's bounds; a parameter twice).
Result<PolicySpec> parse_policy_spec(std::string_view text);
// The shortest text that parses to `spec`.
std::string to_string(const PolicySpec& spec);

// A container's future demand, for the oracles: its samples in ascending time. An absent value was
// not measured.
struct FutureDemand {
  using Values = std::vector<std::optional<double>>;
  std::vector<double> seconds;  // same clock as Observation::time
  Values cpu_cores;             // mean of the interval that ends there
  Values memory_bytes;          // need at that moment
};

// Memory need of one finished run, in ascending time. Samples without a measured need are left out.
struct MemoryCourse {
  std::vector<double> seconds;  // since the start of the run
  std::vector<double> bytes;
};

// Mean and deviation of the demand in one phase, over all containers of the training data. These
// are the published statistics of AI4DL.
struct PhaseStatistics {
  double count = 0;
  double cpu_mean_cores = 0, cpu_deviation_cores = 0;
  double memory_mean_bytes = 0, memory_deviation_bytes = 0;
};

// The default risk and its bounds.
inline constexpr double kShippedRisk = 0.001, kLeastRisk = 1e-6, kMostRisk = 0.5;

// The environment of a policy, besides its own parameters.
struct PolicyEnvironment {
  // How far a policy must look ahead, in seconds. The machine's reaction time decides.
  double cpu_horizon_seconds = 10;     // until a change is detected and the CPU limit is raised
  double memory_horizon_seconds = 60;  // between two lowerings of memory
  double window_seconds = 600;  // for policies that use a window
  // Limits are raised when use exceeds this share, whatever the policy recommends. In replay a
  // fast path does this, in the daemon the safety rules do.
  double guard_threshold = 0.95;
  // Factor on the risk for CPU: too little CPU costs milliseconds, too little memory may cost the
  // process.
  double cpu_risk_factor = 1;
  double risk = kShippedRisk;  // share of the samples that may exceed the limit; set by the user
  std::optional<double> job_seconds;  // length of a run, for half-lives tuned to it
  // Statistics by index of the phase. Null: none.
  std::shared_ptr<const std::vector<PhaseStatistics>> phase_statistics;
  std::shared_ptr<const FutureDemand> future;  // null outside of replay: no oracle
  // Of earlier runs of the same service, oldest first. Absent outside of replay.
  std::optional<std::vector<std::shared_ptr<const MemoryCourse>>> earlier_courses;
};

}  // namespace cgphase
