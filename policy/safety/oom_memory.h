// What OOMs under limits of ours taught of images: a floor for memory limits that decays
// (docs/safety.md). It never enters the statistics of a policy.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "policy/phase/remembered_time.h"

namespace cgphase {

// An OOM of one container while a limit of ours was in force.
struct OomSeen {
  double measured_bytes = 0;  // the highest need measured shortly before
  double limit_bytes = 0;     // memory.max, where the kernel says that it was met; else 0
};

// After an OOM at that need: max(need x 1.2, need + 100 MiB).
double oom_floor_bytes(double need_bytes);

// By image. Time is the wall clock's, for it outlives the daemon and the boot.
class OomMemory {
 public:
  static constexpr std::size_t kImages = 128;          // of more, the OOM longest ago is forgotten
  static constexpr std::size_t kMostNameBytes = 1024;  // as escape_name() prints it; else not kept
  // The floor is below the need that it came of after eight days: what runs once a week finds it
  // there the next time.
  static constexpr std::chrono::hours kHalfLife{30 * 24};
  static constexpr int kHalfLives = 4;  // then it is forgotten

  // The need at the first OOM is the limit that was met, or what was measured. While its floor
  // stands, limits may come from it, and only a need that was measured makes it higher: otherwise
  // it would feed on itself. An OOM at a limit then renews it.
  void remember(const std::string& image, const OomSeen& oom, WallTime time);
  // Of each image the higher floor stays.
  void add(const OomMemory& earlier, WallTime now);
  // Once per tick, as RememberedTime.
  bool follow_clock(WallTime now);
  // The memory limit should not come below this; 0 where nothing is remembered.
  double floor_bytes(const std::string& image, WallTime now) const;
  std::size_t size() const { return needs_.size(); }

  nlohmann::json to_json() const;
  // Errors: invalid, naming what is wrong.
  static Result<OomMemory> from_json(const nlohmann::json& json);

 private:
  struct Need {
    double bytes = 0;
    RememberedTime oom;
  };
  static double floor_of(const Need& need, WallTime now);
  void set(const std::string& name, const Need& need, WallTime now);

  std::map<std::string, Need> needs_;  // by image, printable
};

// Of one container: whether a limit of ours was in force when an OOM met it. memory.high does not
// kill, but what is told of the need is worth keeping.
class OomWatch {
 public:
  // Our own write, or the fast path's, is in force.
  void written(bool lowered) { lowered_ = lowered_ || lowered; }
  // At the end of each step. What the fast path has just raised was in force so short a while ago
  // that an OOM may still be seen.
  void step(bool lowered, bool raised_just_now) {
    lowered_ = lowered || (lowered_ && raised_just_now);
  }
  // An OOM since the last step(), at a memory.max of `limit_bytes` where `limit_met`; absent where
  // no limit was ours.
  std::optional<OomSeen> seen(double measured_bytes, bool limit_met, double limit_bytes) const {
    if (!lowered_) return std::nullopt;
    return OomSeen{measured_bytes, limit_met ? limit_bytes : 0};
  }

 private:
  bool lowered_ = false;  // since the last step
};

}  // namespace cgphase
