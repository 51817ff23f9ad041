// What the rails follow of every container, acted upon or not: whether its samples can be trusted,
// whether its processes came or went, and what the kernel counted against its memory limit.
#pragma once

#include <chrono>
#include <optional>

#include "policy/safety/guard_rails.h"
#include "policy/safety/known_sources.h"

namespace cgphase {

// Of one container.
class RailWatch {
 public:
  // `config` outlives it.
  explicit RailWatch(const RailsConfig& config) : config_(config) {}

  // Once per tick, in order of time.
  void add(const RailInput& input);
  // One started that may read its limits; between two samples, too.
  void program_started(MonotonicTime time) { hold(time + config_.start_up); }

  // Too little is known of this moment to lower anything: first sample, gap, frozen or just
  // thawed, a counter fell, a file that was there is not, or one of these a short while ago, or
  // processes or a program that just started.
  bool stale() const { return stale_; }
  bool lost() const { return lost_; }          // one of these with this sample
  bool emptied() const { return emptied_; }    // no process is left
  bool started() const { return started_; }    // the first process came
  bool max_event() const { return max_event_; }
  bool oom_event() const { return oom_event_; }
  bool limit_met() const { return limit_met_; }  // an OOM for the limit, not for the whole host

 private:
  void hold(MonotonicTime until);
  void judge_freshness(const RailInput& input);
  void follow_events(const RailInput& input);

  const RailsConfig& config_;
  bool stale_ = true, lost_ = true, emptied_ = false, started_ = false, max_event_ = false,
       oom_event_ = false, limit_met_ = false;
  KnownSources sources_;
  std::optional<bool> populated_;
  std::optional<MonotonicTime> hold_until_;
  MemoryEvents events_;
  OwnLimitEvents own_events_;  // of the last sample
};

}  // namespace cgphase
