// A manager of limits that nobody knows by name: whoever changes the limits of one container again
// each time that we have lowered them. Two that write the same file fight without end, and the
// container pays for both; so it is left to the other.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "policy/safety/guard_rails.h"

namespace cgphase {

// Of one container.
class RivalWatch {
 public:
  // `config` outlives it.
  explicit RivalWatch(const RailsConfig& config) : config_(config) {}

  // A lowering of ours is in force.
  void lowered() { contested_ = false; }
  // Somebody else changed a limit. Counts once after each lowering: what a person tries within an
  // hour, or one update of several limits, is one change.
  void changed(MonotonicTime now);

  // The container is left alone. After that it is tried again, and the first change is enough.
  bool holding(MonotonicTime now) const { return until_ && now < *until_; }

 private:
  const RailsConfig& config_;
  bool contested_ = true;             // the last lowering has had its answer, or there was none
  std::vector<MonotonicTime> changes_; // in the window, at most rival_changes
  std::optional<MonotonicTime> until_;
};

}  // namespace cgphase
