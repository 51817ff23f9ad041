// The executions of traces as the daemon would have seen them: each with a policy `phase` of its
// own that watched all of it. Rows are read one by one and not kept. For `size` and `fit`.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
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

// All executions of the files, file by file in order of appearance. Without an engine no phase is
// known. Errors: those of TraceReader.
Result<std::vector<WatchedRun>> watch_traces(std::span<const std::string> paths,
                                             const std::shared_ptr<const PhaseEngine>& engine,
                                             double risk);

// What the runs of each service taught, merged in the order in which they began, by its name.
std::map<std::string, nlohmann::json> learned_by_service(std::span<const WatchedRun> runs);

// The engine of a model file; null where `path` is the installed model and there is none. Errors:
// those of load_model().
Result<std::shared_ptr<const PhaseEngine>> engine_of(const std::string& path);

}  // namespace cgphase
