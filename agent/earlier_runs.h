// What runs of the daemon before this one left in the history, apart from learned phases.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "policy/safety/safety_memory.h"
#include "storage/store.h"

namespace cgphase {

struct EarlierRuns {
  SafetyMemory safety;
  std::optional<WallTime> last_written;  // a limit
  std::string damage;                    // why `safety` is empty although something was stored
};

// On the storage thread. Errors: io while the history cannot be read.
Result<EarlierRuns> load_earlier_runs(Store& store);

}  // namespace cgphase
