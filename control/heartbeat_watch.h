// Decides when a daemon counts as silent. Pure; the companion feeds it.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace cgphase {

class HeartbeatWatch {
 public:
  HeartbeatWatch(std::chrono::nanoseconds silence, std::chrono::nanoseconds poll_interval)
      : silence_(silence), late_(2 * poll_interval) {}

  // `beat` is the daemon's last one; nobody is silent before the first. A watcher that was itself
  // held up (a suspended or overloaded host) gives the daemon a full measure of silence again.
  bool silent(MonotonicTime now, MonotonicTime beat) {
    if (last_look_ != MonotonicTime{} && now - last_look_ > late_) grace_from_ = now;
    last_look_ = now;
    if (beat == MonotonicTime{}) return false;
    return now - std::max(beat, grace_from_) > silence_;
  }

 private:
  std::chrono::nanoseconds silence_;
  std::chrono::nanoseconds late_;
  MonotonicTime last_look_{};
  MonotonicTime grace_from_{};
};

}  // namespace cgphase
