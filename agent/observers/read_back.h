// The result of a write as text for the journal.
#pragma once

#include <string>

#include "cgroupfs/limits.h"

namespace cgphase {

// The files whose content changed, with their content: "cpu.max reads 50000 100000".
std::string read_back_text(const Limits& before, const Limits& in_force);

}  // namespace cgphase
