// Which goals are met and which are not, and what phases and the CRBM add, in sentences: the head
// of results.md. Pure.
#pragma once

#include <span>
#include <string>

#include "tests/workloads/policy_results.h"

namespace cgphase::workloads {

std::string summary_text(std::span<const SetResults> sets);

}  // namespace cgphase::workloads
