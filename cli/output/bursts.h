// Bursts as people see them, and how well those of a run are foretold by earlier runs of the same
// service, on recorded executions (docs/internals/lab.md). Pure but for the reading of traces, row
// by row.
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

// All executions of the files, in order of their first rows. `network_per_interval`: net.rx.bytes
// and net.tx.bytes are what went in the interval that ends with the row, as traces of others have
// it, and no counters. Errors: those of TraceReader.
Result<std::vector<BurstRun>> read_burst_runs(std::span<const std::string> paths,
                                              bool network_per_interval);

// {"schema":1, "rows":[..], "services":[..], "errors":[..]}: per number of each execution what it
// was and what the ones before it foretold; per service what the next is foretold; and per number
// how far off that was.
nlohmann::json bursts_report(std::span<const BurstRun> runs);
std::string render_bursts(const nlohmann::json& body, const TextStyle& style);

// The member `bursts` of what `show` answers; empty where neither this run nor an earlier one has
// any.
std::string render_container_bursts(const nlohmann::json& bursts, const TextStyle& style);

}  // namespace cgphase
