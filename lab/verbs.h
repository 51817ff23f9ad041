// The verbs that compare and draw.
#pragma once

#include <span>

#include "cli/commands/verbs.h"

namespace cgphase {

std::span<AddVerbs* const> lab_verbs();

}  // namespace cgphase
