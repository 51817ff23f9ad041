// What replay reports of each policy, as a table: the name by which JSON, CSV and --assert know a
// measure, and how it is taken from the sums. Pure.
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
  // A ratio is weighted by job: the mean over executions. All else is a sum.
  enum class Kind : std::uint8_t { ratio, count, seconds };
  // Of one execution or of sums of several. Absent: it does not exist, as the gap to an oracle
  // that has no gap to the original.
  using Of = std::optional<double> (*)(const ReplaySums& sums);

  std::string_view name;
  Kind kind = Kind::ratio;
  Of of = nullptr;
  bool closed_loop_only = false;
};

std::span<const Measure> all_measures();
// Null where there is none of that name.
const Measure* find_measure(std::string_view name);

// The main value: of ratios the mean over the executions in which the measure exists, of the rest
// the sum over all. Absent where it exists in none.
std::optional<double> weighted_by_job(const Measure& measure,
                                      std::span<const ReplaySums> executions);

// The ratio of the sums.
std::optional<double> weighted_by_resource_hour(const Measure& measure,
                                                std::span<const ReplaySums> executions);

ReplaySums total_of(std::span<const ReplaySums> executions);

inline constexpr Resource kResources[] = {Resource::cpu, Resource::memory};

// The sums of one resource, by execution.
std::vector<ReplaySums> sums_of(const ContenderResult& result, Resource resource);
// Whether any execution had demand and limit of that resource: what was not measured is not
// reported.
bool measured(std::span<const ReplaySums> executions);

}  // namespace cgphase
