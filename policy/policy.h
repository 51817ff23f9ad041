// Policies are pure objects that recommend a limit. There is one instance per container. They know
// nothing of safety rules, trials or files. Replay compares them without these.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "model/forecast.h"
#include "model/phase.h"
#include "policy/decision.h"
#include "policy/learned_state.h"
#include "policy/pin.h"
#include "policy/policy_spec.h"

namespace cgphase {

// The derived values of one tick of one container. An absent value was not measured.
struct Observation {
  MonotonicTime time;
  double interval_seconds = 0;  // since the previous one; 0 for the first and after a gap
  std::optional<double> cpu_cores;           // mean over the interval
  std::optional<double> memory_need_bytes;   // at the end of the interval
  bool cpu_censored = false;                 // throttled in the interval: usage is a lower bound
  std::optional<double> cpu_limit_cores;     // limit in force; if censored, demand exceeded it
  Phase phase;
};

// The limits that a policy recommends now. Absent: no opinion, the limit stays.
struct Recommendation {
  std::optional<Cores> cpu;
  std::optional<Bytes> memory;
  Reason reason = Reason::phase_statistics;
  double cpu_sample_count = 0;     // behind `cpu`, for the rule "enough samples"
  double memory_sample_count = 0;  // behind `memory`
  int earlier_runs = 0;            // earlier runs of the same image that saw this phase
  bool cpu_pinned = false;         // `cpu` comes from an administrator's pin
  bool memory_pinned = false;      // `memory` comes from an administrator's pin
  double memory_peak_bytes = 0;    // treated by the safety rules like a peak of the last minute

  Reason reason_for(Resource resource) const {
    return (resource == Resource::cpu ? cpu_pinned : memory_pinned) ? Reason::pinned : reason;
  }
  // Earlier runs prove only the policy's recommendation, not a pin.
  int earlier_runs_for(Resource resource) const {
    return reason_for(resource) == Reason::pinned ? 0 : earlier_runs;
  }
  // Replaces the values that the pin has. `samples`: number of samples of this phase since the pin
  // was set. `peak_bytes`: highest need of the run, which a policy would have learned.
  Recommendation pinned(const Pin& pin, double samples, double peak_bytes) const;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void observe(const Observation& observation) = 0;
  // Called before the first observation if memory need of this run already reached this many bytes.
  virtual void resume([[maybe_unused]] double memory_peak_bytes) {}
  // `original` is the ceiling. Without an original limit, the capacity of `host` is the ceiling.
  virtual Recommendation allocate(const Limits& original, const HostCapacity& host) const = 0;
  // What this run learned. It can be merged into the priors of later runs of the same image. Empty
  // for policies that store nothing.
  virtual LearnedState learned() const { return {}; }
  // Forecast for `horizon` from the last observation on. Absent if the policy makes no forecasts,
  // and while it lacks data.
  virtual std::optional<Forecast> forecast([[maybe_unused]] std::chrono::seconds horizon) const {
    return std::nullopt;
  }
};

// Number of samples before a policy without a prior recommends anything.
inline constexpr int kWarmUpSamples = 10;

// `prior`: what earlier runs of the same image learned. A policy ignores one that it cannot use.
// Errors: invalid (an unknown name or parameter, with the nearest one; or a policy that needs data
// which its surroundings lack).
Result<std::unique_ptr<Policy>> make_policy(const PolicySpec& spec, const LearnedState& prior = {},
                                            const PolicyEnvironment& environment = {});
// The same with default parameters.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const LearnedState& prior = {},
                                            const PolicyEnvironment& environment = {});
std::vector<std::string_view> policy_names();
// Whether the daemon can use the policy in `text`. Errors: those of parse_policy_spec(), and
// invalid for a policy that only replay can create (for example because it needs the future).
Status check_live_policy(std::string_view text);

}  // namespace cgphase
