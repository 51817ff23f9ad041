// Table of the measures that replay reports: the name in JSON, CSV and --assert, and how the value
// follows from the sums. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lab/replay/measures.h"
#include "lab/replay/replay.h"
#include "policy/decision.h"

namespace cgphase {

struct Measure {
  // A ratio is weighted by job: the mean over executions. Other measures are sums.
  enum class Kind : std::uint8_t { ratio, count, seconds };
  // For one execution or for sums of several. Absent: not defined, like the gap to an oracle that
  // equals the original.
  using Of = std::optional<double> (*)(const ReplaySums& sums);

  std::string_view name;
  Kind kind = Kind::ratio;
  Of of = nullptr;
  bool closed_loop_only = false;
};

std::span<const Measure> all_measures();
// Null if there is no measure of that name.
const Measure* find_measure(std::string_view name);

// The main value: for ratios the mean over executions that have the measure, otherwise the sum over
// all. Absent if no execution has it.
std::optional<double> weighted_by_job(const Measure& measure,
                                      std::span<const ReplaySums> executions);

// The ratio of the sums.
std::optional<double> weighted_by_resource_hour(const Measure& measure,
                                                std::span<const ReplaySums> executions);

ReplaySums total_of(std::span<const ReplaySums> executions);

inline constexpr Resource kResources[] = {Resource::cpu, Resource::memory};

// The sums of one resource, by execution.
std::vector<ReplaySums> sums_of(const ContenderResult& result, Resource resource);
// True if any execution had demand and limit of that resource. Other resources are not reported.
bool measured(std::span<const ReplaySums> executions);

}  // namespace cgphase
