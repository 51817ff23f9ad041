// The report of `cgphase replay` and its formats: JSON and CSV for programs, a table for people.
// Pure: the same replay gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/style.h"
#include "lab/replay/assertion.h"
#include "lab/replay/bootstrap.h"
#include "lab/replay/comparison.h"
#include "lab/replay/measures.h"
#include "lab/replay/replay.h"
#include "traces/trace.h"

namespace cgphase {

struct ReplayReport {
  std::vector<TraceSource> traces;    // in the order of the command line
  std::vector<TraceSource> training;
  std::optional<std::uint32_t> model_crc, compat_model_crc;  // CRC-32C of the files
  ReplaySettings settings;
  double cadence_seconds = 1;         // usual interval of samples; only for the text
  double played_seconds = 0;          // of all executions
  BootstrapOptions bootstrap;
  std::vector<ContenderResult> results;
  std::optional<Comparison> comparison;
  std::vector<AssertionReport> assertions;

  std::size_t executions() const {
    return results.empty() ? 0 : results.front().executions.size();
  }
};

// The policy's name in --assert and in text, with "+rails" appended if it has safety rules.
std::string policy_name(const ContenderResult& result);

// of all executions
std::uint32_t decisions_crc(const ContenderResult& result);
std::uint32_t decisions_crc(const ReplayReport& report);

// 95 % intervals of every ratio of all_measures(), in that order; other measures are left out.
std::vector<std::optional<Interval>> ratio_intervals(std::span<const ReplaySums> executions,
                                                     const BootstrapOptions& options);

// A sentence on how many executions are measured by the largest use of a resource; empty if none.
std::string measured_by_use(const ReplayReport& report);

std::string replay_json(const ReplayReport& report);
// One line per execution, policy, margin and resource.
std::string replay_jsonl(const ReplayReport& report);
std::string replay_csv(const ReplayReport& report, bool legend);
std::string replay_text(const ReplayReport& report, const TextStyle& style);

}  // namespace cgphase
