// Arguments that `size` and `fit` share.
#pragma once

#include <string>

#include "base/result.h"

namespace cgphase {

// Parses "0.1%" or "0.001"; returns `otherwise` if the text is empty. Errors: invalid (not a
// number, or not between 0 and 1).
Result<double> parse_risk(const std::string& text, double otherwise);

// True if `name` is a relative path, ends in .csv or .gz, or exists as a file. Anything else names
// a container.
bool names_a_file(const std::string& name);

}  // namespace cgphase
