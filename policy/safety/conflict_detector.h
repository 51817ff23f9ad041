// Detects a conflicting writer: an unknown manager that changes a container's limits after each of
// our lowerings. Two managers of one file would fight endlessly at the container's expense, so the
// container is left to the other one.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "policy/safety/safety_rules.h"

namespace cgphase {

// For one container.
class ConflictDetector {
 public:
  // `config` must outlive it.
  explicit ConflictDetector(const SafetyConfig& config) : config_(config) {}

  // A lowering of ours is in force.
  void lowered() { contested_ = false; }
  // Somebody else changed a limit. Counts once per lowering, so that several attempts of a person
  // within an hour, or an update of several limits, are one change.
  void changed(MonotonicTime now);

  // True while the container is left alone. Afterwards it is tried again, and then one change is
  // enough.
  bool blocked_by(MonotonicTime now) const { return until_ && now < *until_; }

 private:
  const SafetyConfig& config_;
  bool contested_ = true;             // the last lowering was answered, or there was none
  std::vector<MonotonicTime> changes_; // in the window, at most rival_changes
  std::optional<MonotonicTime> until_;
};

}  // namespace cgphase
