// The measures of the goals, for one policy of ours on one set and resource. Pure.
#pragma once

#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/workloads/policy_results.h"

namespace cgphase::workloads {

// Cost of ours relative to others at the same share of samples over. Absent if one of them cannot
// reach that level.
struct Ratios {
  std::optional<double> at[std::size(kMatchedViolations)];
};

struct Verdict {
  std::optional<double> at_shipped;  // to the controls, at ours as shipped
  std::optional<double> ours_above, controls_above;
  Ratios controls, ai4dl;
  std::optional<double> published;   // to AI4DL's as published
  double over = 0;          // of ours as shipped
  double writes_ratio = 0;  // to hold as published
  std::int64_t would_oom = 0;
};

// Absent if the resource was not measured.
std::optional<Verdict> verdict_of(const SetResults& results, const Sweep& ours, Resource resource);

// A policy as published; null if it did not run.
const ContenderResult* find(const SetResults& results, std::string_view policy);
double writes_of(const std::vector<ReplaySums>& executions);
const ResourceComparison* resource_of(const Comparison& comparison, Resource resource);

}  // namespace cgphase::workloads
