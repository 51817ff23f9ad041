// The phase-free controls over all of their parameters: what the policies that know phases must
// beat is the envelope of these, not one of them.
#pragma once

#include <vector>

#include "policy/policy_spec.h"

namespace cgphase {

// `sliding` and `hold`, as published and with a few hundred sets of parameters around that, from
// those that go over 10 % of the time to those that hardly ever do. No two are equal.
std::vector<PolicySpec> control_sweep();

}  // namespace cgphase
