// A decaying memory floor for each image that had an OOM under a limit of ours (docs/safety.md). It
// never enters the statistics of a policy.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "policy/phase/remembered_time.h"

namespace cgphase {

// An OOM of one container under a limit of ours.
struct OomSeen {
  double measured_bytes = 0;  // the highest need measured shortly before
  double limit_bytes = 0;     // memory.max, if the kernel reports that it was reached; else 0
};

// The floor after an OOM at this need: max(need x 1.2, need + 100 MiB).
double oom_floor_bytes(double need_bytes);

// By image. Times are of the wall clock, because they outlive daemon and boot.
class OomMemory {
 public:
  static constexpr std::size_t kImages = 128;          // above this, the oldest OOM is dropped
  static constexpr std::size_t kMostNameBytes = 1024;  // as printed by escape_name(); longer ones
                                                       // are not stored
  // After eight days the floor is below the need that caused it. A weekly job still finds a useful
  // floor.
  static constexpr std::chrono::hours kHalfLife{30 * 24};
  static constexpr int kHalfLives = 4;  // after that the floor is dropped

  // For the first OOM, need is the limit that was reached, or the measured need. While a floor
  // exists, limits may result from it. Only a measured need then raises the floor; otherwise it
  // would raise itself. An OOM at a limit renews it.
  void remember(const std::string& image, const OomSeen& oom, WallTime time);
  // Keeps the higher floor of each image.
  void add(const OomMemory& earlier, WallTime now);
  // Call it once per tick, as for RememberedTime.
  bool follow_clock(WallTime now);
  // The memory limit should not be lowered below this. 0 if nothing is stored.
  double floor_bytes(const std::string& image, WallTime now) const;
  std::size_t size() const { return needs_.size(); }

  struct Need {
    double bytes = 0;
    RememberedTime oom;
  };
  using Needs = std::map<std::string, Need>;  // by image, printable
  const Needs& needs() const { return needs_; }
  // Errors: invalid (too many images, a name too long, a need out of range).
  static Result<OomMemory> from_needs(Needs needs);

 private:
  static double floor_of(const Need& need, WallTime now);
  void set(const std::string& name, const Need& need, WallTime now);

  Needs needs_;
};

// For one container: whether a limit of ours was in force at an OOM. memory.high does not kill, but
// the need at an OOM is still worth storing.
class OomWatch {
 public:
  // A write of ours, or of the fast path, is in force.
  void written(bool lowered) { lowered_ = lowered_ || lowered; }
  // Call it at the end of each step. A limit that the fast path has just raised was in force so
  // recently that its OOM may still be reported.
  void step(bool lowered, bool raised_just_now) {
    lowered_ = lowered || (lowered_ && raised_just_now);
  }
  // The OOM since the last step(). With `limit_met` it was at a memory.max of `limit_bytes`. Absent
  // if no limit was ours.
  std::optional<OomSeen> seen(double measured_bytes, bool limit_met, double limit_bytes) const {
    if (!lowered_) return std::nullopt;
    return OomSeen{measured_bytes, limit_met ? limit_bytes : 0};
  }

 private:
  bool lowered_ = false;  // since the last step
};

}  // namespace cgphase
