// results.md (scripts/results) as text. Pure.
#pragma once

#include <span>
#include <string>

#include "tests/workloads/policy_results.h"

namespace cgphase::workloads {

std::string results_text(std::span<const SetResults> sets);

}  // namespace cgphase::workloads
