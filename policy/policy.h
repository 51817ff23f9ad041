// Policies: pure objects that say how much a container should have. One instance per container.
// They know nothing of rails, trials or files; replay compares them bare.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
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
#include "policy/pin.h"
#include "policy/policy_spec.h"

namespace cgphase {

// One tick of one container, derived. An absent value was not measured.
struct Observation {
  MonotonicTime time;
  double interval_seconds = 0;  // since the previous one; 0 for the first and after a gap
  std::optional<double> cpu_cores;           // mean over the interval
  std::optional<double> memory_need_bytes;   // at the end of the interval
  bool cpu_censored = false;                 // throttled in the interval: usage is a lower bound
  std::optional<double> cpu_limit_cores;     // in force; what demand passed if it was censored
  Phase phase;
};

// What a policy wants in force now. Absent = no opinion: hold.
struct Allocation {
  std::optional<Cores> cpu;
  std::optional<Bytes> memory;
  Reason reason = Reason::phase_statistics;
  double cpu_sample_count = 0;     // behind `cpu`, for the "enough samples" rail
  double memory_sample_count = 0;  // behind `memory`
  int earlier_runs = 0;            // earlier runs of the same image that saw this phase
  bool cpu_pinned = false;         // `cpu` is what an administrator asked for, `memory` so
  bool memory_pinned = false;
  double memory_peak_bytes = 0;    // the rails keep above it as above one of the last minute

  Reason reason_for(Resource resource) const {
    return (resource == Resource::cpu ? cpu_pinned : memory_pinned) ? Reason::pinned : reason;
  }
  // What they proved is the policy's need, not what was asked for.
  int earlier_runs_for(Resource resource) const {
    return reason_for(resource) == Reason::pinned ? 0 : earlier_runs;
  }
  // `samples`: how many there are of this phase since it was pinned, whatever the policy counts.
  // `peak_bytes`: of the run's need, of which a policy would have learned.
  Allocation pinned(const Pin& pin, double samples, double peak_bytes) const;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void observe(const Observation& observation) = 0;
  // What is known of this run from before the first observation: memory went up to so many bytes.
  virtual void resume([[maybe_unused]] double memory_peak_bytes) {}
  // `original` is the ceiling, `host` stands in where there is none.
  virtual Allocation allocate(const Limits& original, const HostCapacity& host) const = 0;
  // What this run learned, mergeable into the priors of later runs of the same image; null for
  // policies that keep nothing.
  virtual nlohmann::json learned() const = 0;
  // What may come within `horizon`, as of the last observation; absent for policies that do not
  // look ahead, and while there is no basis for it.
  virtual std::optional<Forecast> forecast([[maybe_unused]] std::chrono::seconds horizon) const {
    return std::nullopt;
  }
};

// The warm-up of every policy that nothing earlier taught: fewer samples say nothing.
inline constexpr int kWarmUpSamples = 10;

// `prior` is what earlier runs of the same image learned (null = none); a malformed one is ignored.
// Errors: invalid for an unknown name or parameter, naming the nearest, and for a policy that needs
// what its surroundings lack.
Result<std::unique_ptr<Policy>> make_policy(const PolicySpec& spec, const nlohmann::json& prior,
                                            const PolicySurroundings& surroundings = {});
// The same with the published parameters.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const nlohmann::json& prior,
                                            const PolicySurroundings& surroundings = {});
std::vector<std::string_view> policy_names();
// Whether the daemon can have the policy of `text`. Errors: those of parse_policy_spec(), and
// invalid for a policy that only replay can make (it needs the future, say).
Status check_live_policy(std::string_view text);

// Adds the statistics of one run to those of earlier ones (decayed).
nlohmann::json merge_learned(const nlohmann::json& earlier, const nlohmann::json& run);

}  // namespace cgphase
