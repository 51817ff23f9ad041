#include "policy/safety/conflict_detector.h"

#include <utility>

namespace cgphase {

void ConflictDetector::changed(MonotonicTime now) {
  if (std::exchange(contested_, true)) return;
  while (!changes_.empty() && now - changes_.front() >= config_.rival_window)
    changes_.erase(changes_.begin());
  changes_.push_back(now);
  const bool known = until_.has_value();
  if (!known && static_cast<int>(changes_.size()) < config_.rival_changes) return;
  until_ = now + config_.rival_pause;
  changes_.clear();
}

}  // namespace cgphase
