// Decides when a daemon counts as silent. Pure; the companion feeds it.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace cgphase {

class HeartbeatWatch {
 public:
  // So many looks at the poll interval come before any verdict: a host that was held up for the
  // time of a rest alone is noticed by them.
  static constexpr int kCloseLooks = 4;

  HeartbeatWatch(std::chrono::nanoseconds silence, std::chrono::nanoseconds poll_interval)
      : silence_(silence), interval_(poll_interval), rest_(poll_interval) {}

  // `beat` is the daemon's last one; nobody is silent before the first. A watcher that was itself
  // held up (a suspended or overloaded host) gives the daemon a full measure of silence again.
  bool silent(MonotonicTime now, MonotonicTime beat) {
    if (last_look_ != MonotonicTime{} && now - last_look_ > rest_ + interval_) grace_from_ = now;
    last_look_ = now;
    rest_ = interval_;
    if (beat == MonotonicTime{}) return false;
    const std::chrono::nanoseconds age = now - std::max(beat, grace_from_);
    if (age > silence_) return true;
    rest_ = std::max(interval_, silence_ - age - kCloseLooks * interval_);
    return false;
  }
  // After that look: when to look again. A daemon that beat just now cannot be silent for long.
  std::chrono::nanoseconds rest() const { return rest_; }

 private:
  std::chrono::nanoseconds silence_, interval_;
  std::chrono::nanoseconds rest_;
  MonotonicTime last_look_{};
  MonotonicTime grace_from_{};
};

}  // namespace cgphase
