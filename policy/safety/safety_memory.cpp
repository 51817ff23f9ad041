#include "policy/safety/safety_memory.h"

namespace cgphase {

void SafetyMemory::add(const SafetyMemory& earlier, WallTime now) {
  ooms.add(earlier.ooms, now);
  quarantines.add(earlier.quarantines, now);
}

bool SafetyMemory::follow_clock(WallTime now) {
  const bool changed = ooms.follow_clock(now);
  return quarantines.follow_clock(now) || changed;
}

}  // namespace cgphase
