// Words that `size` and `fit` share.
#pragma once

#include <string>

#include "base/result.h"

namespace cgphase {

// "0.1%" or "0.001"; `otherwise` where the text is empty. Errors: invalid (no number, not above 0
// or not below 1).
Result<double> parse_risk(const std::string& text, double otherwise);

// A trace has a path, an ending or is there; all else is the name of a container.
bool names_a_file(const std::string& name);

}  // namespace cgphase
