// A moment of the wall clock that outlives daemon and boot, and how old it is by a clock that may
// be set.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"

namespace cgphase {

struct RememberedTime {
  WallTime time;
  std::optional<WallTime> ages_from = {};  // while `time` is later than now

  // A clock that was set back makes nothing older.
  std::chrono::nanoseconds age(WallTime now) const { return now - begin(now); }
  WallTime begin(WallTime now) const {
    return time <= now ? time : std::min(ages_from.value_or(now), now);
  }
  // What is dated later than `now` ages from now on: the clock was far ahead then. If it is far
  // behind now instead, and is put right, the old date counts again. True where this changed
  // something that should outlive the daemon.
  bool follow_clock(WallTime now) {
    if (time <= now || (ages_from && *ages_from <= now)) return false;
    ages_from = now;
    return true;
  }
  // Its members in `object`: time_ns, and ages_from_ns where there is one.
  void to_json(nlohmann::json& object) const;
  // Absent where they are missing or no times.
  static std::optional<RememberedTime> from_json(const nlohmann::json& object);
};

}  // namespace cgphase
