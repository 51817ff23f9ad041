// Replays recorded executions under policies, with the daemon's phases, observations and policies,
// a virtual clock, and a closed loop instead of the kernel. Pure: the same traces, model and
// settings give the same bits on every machine.
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
#include "policy/safety_config.h"
#include "policy/terms.h"
#include "traces/trace.h"

namespace cgphase {

inline constexpr Resource kResources[] = {Resource::cpu, Resource::memory};

struct ReplaySettings {
  ClosedLoop loop;
  double window_seconds = 600;
  double step_seconds = 0;  // between two decisions; 0: at each sample
  double risk = kShippedRisk;
  bool safety = false;       // the daemon's whole pipeline with its safety rules and steps
  SafetyConfig rules;                     // their numbers
  CpuLever cpu_lever = CpuLever::weight;  // of these rules
};

// One policy to replay. `margin` is added to its recommendation (0.1: 10 % more).
struct Contender {
  PolicySpec policy;
  double margin = 0;
};

// Executions to replay, and earlier runs that are only learned from. All must be read with
// replay_columns() of the engines.
struct ReplayInput {
  std::vector<Execution> executions;
  std::vector<Execution> training;
  std::shared_ptr<const PhaseEngine> engine;  // null: every phase is "not enough history"
  std::shared_ptr<const PhaseEngine> compat_engine;  // of AI4DL's own model; null: none
};

// Reference of an execution's allocation: the user's limit; without one, the host; if the host is
// unknown, the largest use in the recording.
enum class Yardstick : std::uint8_t { limit, host, largest_use };
const char* to_string(Yardstick yardstick);
Yardstick yardstick_of(const ExecutionHeader& execution, Resource resource);

// Limit in force after each sample, for pictures.
struct ReplayLimits {
  std::vector<double> seconds, cpu_cores, memory_bytes;
};

struct ExecutionResult {
  std::string id, service;
  Yardstick cpu_by = Yardstick::limit, memory_by = Yardstick::limit;
  ReplaySums cpu, memory;
  ReplayLimits limits;       // empty unless requested
  std::uint32_t crc = 0;     // CRC-32C of all limits in force, as bits
};

struct ContenderResult {
  Contender contender;
  bool safety = false;
  double guard_threshold = ClosedLoop{}.guard_threshold;
  std::vector<ExecutionResult> executions;  // in the order of ReplayInput::executions
};

// The sums of one resource, by execution.
std::vector<ReplaySums> sums_of(const ContenderResult& result, Resource resource);

// Returns the columns to read traces with (TraceOptions::columns). Errors: invalid (the engines use
// different columns).
Result<std::vector<std::string>> replay_columns(const PhaseEngine* engine,
                                                const PhaseEngine* compat_engine);

// Replays one contender over all executions. A run is learned from by later runs of the same
// service, which begin after it ended. Training executions count as ended before all others.
// Errors: invalid (something that the policy needs is missing, such as statistics of phases).
Result<ContenderResult> replay(const ReplayInput& input, const ReplaySettings& settings,
                               const Contender& contender, bool keep_limits);

}  // namespace cgphase
