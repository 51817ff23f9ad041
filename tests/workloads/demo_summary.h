// Evaluates the rounds of scripts/demo: how much was saved, and whether all requirements are met.
// Pure: from what demo_mix wrote to a verdict and its text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/workloads/demo_raise.h"

namespace cgphase::workloads {

// The demo fails beyond these. CPU seconds per unit of work, managed against twin:
inline constexpr double kLargestCpuRatio = 1.15;
// The least share of the memory below the users' limits that other jobs could have used:
inline constexpr double kLeastMemoryShare = 0.10;

// The run with the daemon and its unmanaged twin: same mix, seed and static limits.
struct Round {
  nlohmann::json managed, twin;
  std::vector<Raise> raises = {};  // before a phase, in the managed run
};

// One container over all rounds. "static" is the allocation by its user's limits over the same
// time.
struct ContainerSummary {
  std::string name, kind, unit;
  double static_cores = 0, least_cores = 0;  // the user's limit, and the lowest one in force
  double static_bytes = 0, least_bytes = 0;
  double static_core_seconds = 0, core_seconds = 0;
  double static_byte_seconds = 0, byte_seconds = 0;
  std::uint64_t periods = 0, throttled_periods = 0, twin_periods = 0, twin_throttled_periods = 0;
  std::uint64_t oom_kills = 0, twin_oom_kills = 0;
  std::vector<double> cpu_ratios;  // one per round
  double cpu_ratio = 0;            // their median
  std::vector<double> wall_ratios;
  double wall_ratio = 0;
  bool work_equal = true;         // units and results; latencies may differ
  bool succeeded = true;          // every workload ended with 0, in both runs
  bool restored = true;           // every knob is the original again
  int knobs_changed_at_stop = 0;  // limits that the stop had to restore
  int lowered = 0, raised = 0;    // changes of either knob
  int phases_seen = 0;            // different known phases

  double cpu_share() const;  // given back, 0..1
  double memory_share() const;
};

struct Requirement {
  bool held = false;
  std::string text;
  std::string failure;  // a clause that completes "The demo failed, because"
};

struct DemoSummary {
  std::uint64_t seed = 0;
  std::size_t rounds = 0;
  double daemon_cpu_seconds = 0;
  std::vector<ContainerSummary> containers;
  double cpu_share = 0, memory_share = 0;  // given back, of all containers
  std::vector<double> round_cpu_shares, round_memory_shares;
  std::vector<Raise> raises;  // of the last round
  std::vector<Requirement> requirements;
};

// The median; 0 if there is no value.
double median(std::vector<double> values);

// Errors: invalid if a run lacks what demo_mix writes, or if the two runs have different mixes.
Result<DemoSummary> summarise(const std::vector<Round>& rounds);

// Every number of the runs, for the file that scripts/demo keeps.
std::string to_details(const DemoSummary& summary, const std::vector<Round>& rounds);
// What scripts/demo prints: one row per container, and one line per raise before a phase.
std::string to_table(const DemoSummary& summary);
std::string to_raises(const DemoSummary& summary);
// The numbers of the last sentence.
std::string to_numbers(const DemoSummary& summary);
// Whether the demo passed, why not, and the numbers.
std::string to_sentence(const std::vector<Requirement>& requirements, const std::string& numbers);
bool all_held(const std::vector<Requirement>& requirements);

}  // namespace cgphase::workloads
