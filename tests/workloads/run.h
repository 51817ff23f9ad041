// The three workloads of the demo, the recordings and the tests. Each does real work at an external
// pace: a network, an accelerator, arriving requests, a queue. Its units of work depend only on
// seed, size and length, so two runs can be compared by CPU time per unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "tests/workloads/label_file.h"

namespace cgphase::workloads {

struct RunOptions {
  std::uint64_t seed = 1;
  double size = 1;      // of the data; at 1 the peak is about 45 to 75 MB
  double seconds = 72;  // planned length on an idle core
  double wait = 0;      // of these, how long a batch job waits for its data
  std::string work_dir = "/tmp";
  // Share of the rows that are multiplied at a time, for a machine that emulates arithmetic.
  double arithmetic = 1;
  std::string far_end;  // address of the network's other end (far_end.h); empty: in the workload
};

// That share of `rows`, at least one.
inline std::size_t rows_at_a_time(std::size_t rows, const RunOptions& options) {
  const double share = static_cast<double>(rows) * options.arithmetic;
  return share > 1 ? static_cast<std::size_t>(share) : 1;
}

struct RunReport {
  std::string unit;  // what `units` counts
  std::uint64_t units = 0;
  nlohmann::ordered_json outcome;  // "loss", "latency_ms", "checksum": must not depend on limits
                                   // except for latencies
};

// A training job: download at a limited rate, unpack and augment in memory, epochs of gradient
// descent with validation and a checkpoint (fsync) each, evaluation. Unit: gradient steps.
Result<RunReport> run_train(const RunOptions& options, LabelFile& labels);

// An inference service: requests in bursts and lulls, a second model loaded at its first request, a
// cache that grows in bursts and is trimmed in lulls. Unit: requests.
Result<RunReport> run_serve(const RunOptions& options, LabelFile& labels);

// A batch job: ingests text into growing memory, sorts and aggregates it in several orders, writes
// the result (fsync), frees the memory, waits for the next round. Unit: records.
Result<RunReport> run_batch(const RunOptions& options, LabelFile& labels);

}  // namespace cgphase::workloads
