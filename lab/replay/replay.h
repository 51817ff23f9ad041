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
#include "lab/replay/closed_loop.h"
#include "lab/replay/measures.h"
#include "model/phase_tracker.h"
#include "policy/decision.h"
#include "policy/policy_spec.h"
#include "traces/trace.h"

namespace cgphase {

struct ReplaySettings {
  ClosedLoop loop;
  double window_seconds = 600;
  double step_seconds = 0;  // between two decisions; 0: at each sample
  double risk = kShippedRisk;
  bool rails = false;       // the daemon's whole pipeline with its rails and steps
};

// One policy to be replayed. `margin` is added to what it wants (0.1: 10 % more).
struct Contender {
  PolicySpec policy;
  double margin = 0;
};

// Executions to replay, and those that only teach (earlier runs). All were read with
// replay_columns() of the engines.
struct ReplayInput {
  std::vector<Execution> executions;
  std::vector<Execution> training;
  std::shared_ptr<const PhaseEngine> engine;  // null: every phase is "not enough history"
  std::shared_ptr<const PhaseEngine> compat_engine;  // of AI4DL's own model; null: none
};

// What an execution's allocation is measured by: the limit of the user; the host, where there is
// none; the largest use in the recording, where that does not tell the host.
enum class Yardstick : std::uint8_t { limit, host, largest_use };
const char* to_string(Yardstick yardstick);
Yardstick yardstick_of(const ExecutionHeader& execution, Resource resource);

// The limit in force after each sample, for pictures.
struct ReplayLimits {
  std::vector<double> seconds, cpu_cores, memory_bytes;
};

struct ExecutionResult {
  std::string id, service;
  Yardstick cpu_by = Yardstick::limit, memory_by = Yardstick::limit;
  ReplaySums cpu, memory;
  ReplayLimits limits;       // empty unless asked for
  std::uint32_t crc = 0;     // CRC-32C of all limits in force, as bits
};

struct ContenderResult {
  Contender contender;
  bool rails = false;
  double guard_threshold = ClosedLoop{}.guard_threshold;
  std::vector<ExecutionResult> executions;  // in the order of ReplayInput::executions
};

// What traces must be read with, TraceOptions::columns. Errors: invalid (both engines look at
// columns, and not at the same ones).
Result<std::vector<std::string>> replay_columns(const PhaseEngine* engine,
                                                const PhaseEngine* compat_engine);

// One contender over all executions. What a run teaches serves later runs of the same service:
// those that begin after it ended; the training executions count as ended before all.
// Errors: invalid (the policy needs what is not there, e.g. statistics of phases).
Result<ContenderResult> replay(const ReplayInput& input, const ReplaySettings& settings,
                               const Contender& contender, bool keep_limits);

}  // namespace cgphase
