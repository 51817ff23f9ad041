// The phase-free controls over all of their parameters. Policies that use phases must beat the
// envelope of these, not a single one.
#pragma once

#include <vector>

#include "policy/policy_spec.h"

namespace cgphase {

// `sliding` and `hold` with default parameters and a few hundred variations. They range from limits
// that are exceeded 10 % of the time to limits that are hardly ever exceeded. No two are equal.
std::vector<PolicySpec> control_sweep();

}  // namespace cgphase
