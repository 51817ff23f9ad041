// Lets a verb that has made temporary files end by itself, so that they go with it.
#pragma once

#include "base/result.h"

namespace cgphase {

// From now on SIGINT, SIGTERM and SIGHUP, but for those that are ignored, are only noted.
void catch_interruptions();
// Errors: io, once one has come.
Status not_interrupted();

}  // namespace cgphase
