// Runs executions of traces through policy `phase`, one policy per execution, as the daemon would.
// Rows are read one by one and not stored. For `size` and `fit`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/phase_tracker.h"
#include "policy/policy.h"
#include "traces/trace.h"

namespace cgphase {

struct WatchedRun : ExecutionHeader {
  std::unique_ptr<Policy> policy;  // has seen every row
  WallTime begin;
  std::optional<double> highest_cpu_cores, highest_memory_bytes;
};

// Returns all executions of the files, file by file in order of appearance. Without an engine all
// phases are unknown. Errors: those of TraceReader.
Result<std::vector<WatchedRun>> watch_traces(std::span<const std::string> paths,
                                             const std::shared_ptr<const PhaseEngine>& engine,
                                             double risk);

// Returns the learned state of each service by its name, merged in the order in which the runs
// began.
std::map<std::string, LearnedState> learned_by_service(std::span<const WatchedRun> runs);

// Returns the engine of a model file; null if `path` is the default model and the file does not
// exist. Errors: those of load_model().
Result<std::shared_ptr<const PhaseEngine>> engine_of(const std::string& path);

}  // namespace cgphase
