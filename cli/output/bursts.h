// Renders bursts, and reports how well earlier runs of a service predict those of a run
// (docs/internals/lab.md). Pure except for reading traces, row by row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/output/style.h"
#include "model/bursts.h"

namespace cgphase {

struct BurstRun {
  std::string service, execution;
  WallTime begin;
  RunBursts bursts;
};

// Returns all executions of the files, in order of their first rows. If `network_per_interval`,
// net.rx.bytes and net.tx.bytes are bytes of the interval that ends with the row, not counters.
// Errors: those of TraceReader.
Result<std::vector<BurstRun>> read_burst_runs(std::span<const std::string> paths,
                                              bool network_per_interval);

// Returns {"schema":1, "rows":[..], "services":[..], "errors":[..]}. rows: each number of each
// execution, with its prediction from earlier executions. services: the prediction for the next
// execution. errors: the errors of the predictions, per number.
nlohmann::json bursts_report(std::span<const BurstRun> runs);
std::string render_bursts(const nlohmann::json& body, const TextStyle& style);

// Renders the member `bursts` of the reply to `show`; empty if neither this run nor an earlier one
// has bursts.
std::string render_container_bursts(const nlohmann::json& bursts, const TextStyle& style);

}  // namespace cgphase
