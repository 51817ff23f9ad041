// A wall-clock time that is stored beyond daemon and boot, and its age by a clock that may be set.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace cgphase {

struct RememberedTime {
  WallTime time;
  std::optional<WallTime> ages_from = {};  // set while `time` is later than now

  // A clock that is set back makes nothing older.
  std::chrono::nanoseconds age(WallTime now) const { return now - begin(now); }
  WallTime begin(WallTime now) const {
    return time <= now ? time : std::min(ages_from.value_or(now), now);
  }
  // Handles a change of the clock. If `time` is later than `now`, the clock was far ahead when it
  // was stored. It then ages from `now` on. If instead the clock is far behind now and is corrected
  // later, the stored time counts again. Returns true if a value that should be stored changed.
  bool follow_clock(WallTime now) {
    if (time <= now || (ages_from && *ages_from <= now)) return false;
    ages_from = now;
    return true;
  }
};

}  // namespace cgphase
