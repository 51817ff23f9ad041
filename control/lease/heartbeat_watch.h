// Decides when a daemon counts as silent. It reads no clock: the companion passes the times.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace cgphase {

class HeartbeatWatch {
 public:
  // Number of checks at the poll interval before the daemon counts as silent. They detect a host
  // that was suspended during one long pause between checks.
  static constexpr int kCloseChecks = 4;

  HeartbeatWatch(std::chrono::nanoseconds silence, std::chrono::nanoseconds poll_interval)
      : silence_(silence), interval_(poll_interval), rest_(poll_interval) {}

  // Whether the daemon counts as silent at `now`. `beat` is its last heartbeat; before the first
  // one it is never silent. If the watcher itself was delayed (a suspended or overloaded host), the
  // daemon gets the full time again.
  bool silent(MonotonicTime now, MonotonicTime beat) {
    if (last_check_ != MonotonicTime{} && now - last_check_ > rest_ + interval_) grace_from_ = now;
    last_check_ = now;
    rest_ = interval_;
    if (beat == MonotonicTime{}) return false;
    const std::chrono::nanoseconds age = now - std::max(beat, grace_from_);
    if (age > silence_) return true;
    rest_ = std::max(interval_, silence_ - age - kCloseChecks * interval_);
    return false;
  }
  // Time from that check to the next one. It is long after a recent heartbeat.
  std::chrono::nanoseconds rest() const { return rest_; }

 private:
  std::chrono::nanoseconds silence_, interval_;
  std::chrono::nanoseconds rest_;
  MonotonicTime last_check_{};
  MonotonicTime grace_from_{};
};

}  // namespace cgphase
