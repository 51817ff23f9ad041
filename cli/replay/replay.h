// Replays recorded executions under policies: the same phases, observations and policies as the
// daemon's, a virtual clock, and a closed loop in place of the kernel. Pure: the same traces,
// model and settings give the same bits on every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/replay/demand.h"
#include "cli/replay/measures.h"
#include "model/phase_tracker.h"
#include "model/trace.h"
#include "policy/policy_spec.h"

namespace cgphase {

// The closed loop, the same for every policy. Demand between two samples is a straight line. A
// guard watches it: `time_to_raise` after it crosses `guard_threshold` times the limit in force,
// CPU goes up by a fifth, again at each further time_to_raise until the demand fits, memory goes
// to the original. CPU demand that is not met waits and is worked off when the quota allows.
struct ClosedLoop {
  bool enabled = false;  // else: no guard, no backlog, policies see the recorded demand
  double time_to_raise_seconds = 0.1;
  double guard_threshold = 0.95;
};

struct ReplaySettings {
  ClosedLoop loop;
  double window_seconds = 600;
  double step_seconds = 0;  // between two decisions; 0: at each sample
  double risk = 0.001;
  bool rails = false;       // the daemon's whole pipeline with its rails and steps
};

// One policy to be replayed. `margin` is added to what it wants (0.1: 10 % more).
struct Contender {
  PolicySpec policy;
  double margin = 0;
};

// Executions to replay, in order of their beginning, and those that only teach (earlier runs).
struct ReplayInput {
  std::vector<Execution> executions;
  std::vector<Execution> training;
  std::shared_ptr<const PhaseEngine> engine;  // null: every phase is "not enough history"
  std::shared_ptr<const PhaseEngine> compat_engine;  // of AI4DL's own model; null: none
};

// The limit in force after each sample, for pictures.
struct ReplayLimits {
  std::vector<double> seconds, cpu_cores, memory_bytes;
};

struct ExecutionResult {
  std::string id, service;
  ReplaySums cpu, memory;
  ReplayLimits limits;       // empty unless asked for
  std::uint32_t crc = 0;     // CRC-32C of all limits in force, as bits
};

struct ContenderResult {
  Contender contender;
  bool rails = false;
  std::vector<ExecutionResult> executions;  // in the order of ReplayInput::executions
};

// One contender over all executions. What a run teaches serves later runs of the same service:
// those that begin after it ended; the training executions count as ended before all.
// Errors: invalid (the policy needs what is not there, e.g. statistics of phases).
Result<ContenderResult> replay(const ReplayInput& input, const ReplaySettings& settings,
                               const Contender& contender, bool keep_limits);

}  // namespace cgphase
