// Lets a verb clean up its temporary files when a signal ends it.
#pragma once

#include "base/result.h"

namespace cgphase {

// From now on, SIGINT, SIGTERM and SIGHUP only set a flag. Ignored signals stay ignored.
void catch_interruptions();
// Errors: io, after one of these signals.
Status not_interrupted();

}  // namespace cgphase
