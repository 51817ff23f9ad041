#include "policy/safety/rails_memory.h"

namespace cgphase {

void RailsMemory::add(const RailsMemory& earlier, WallTime now) {
  ooms.add(earlier.ooms, now);
  quarantines.add(earlier.quarantines, now);
}

bool RailsMemory::follow_clock(WallTime now) {
  const bool changed = ooms.follow_clock(now);
  return quarantines.follow_clock(now) || changed;
}

}  // namespace cgphase
