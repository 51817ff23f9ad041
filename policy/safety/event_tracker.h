// The state that the safety rules track for every container, changed or not: whether its samples
// can be trusted, whether processes started or ended, and memory events.
#pragma once

#include <chrono>
#include <optional>

#include "policy/safety/safety_rules.h"
#include "policy/safety/known_sources.h"

namespace cgphase {

// For one container.
class EventTracker {
 public:
  // `config` must outlive it.
  explicit EventTracker(const SafetyConfig& config) : config_(config) {}

  // Call it once per tick, in order of time.
  void add(const SafetyInput& input);
  // A program that may read its limits started. May be called between two samples.
  void program_started(MonotonicTime time) { hold(time + config_.start_up); }

  // True if too little is known to lower anything now: the first sample, a gap, frozen or just
  // thawed, a counter reset, a missing file, or one of these recently. Also just after processes or
  // a program started.
  bool stale() const { return stale_; }
  bool lost() const { return lost_; }          // this sample has one of these problems
  bool emptied() const { return emptied_; }    // no process is left
  bool started() const { return started_; }    // the first process started
  bool max_event() const { return max_event_; }
  bool oom_event() const { return oom_event_; }
  bool limit_met() const { return limit_met_; }  // an OOM at the limit, not of the whole host

 private:
  void hold(MonotonicTime until);
  void judge_freshness(const SafetyInput& input);
  void follow_events(const SafetyInput& input);

  const SafetyConfig& config_;
  bool stale_ = true, lost_ = true, emptied_ = false, started_ = false, max_event_ = false,
       oom_event_ = false, limit_met_ = false;
  KnownSources sources_;
  std::optional<bool> populated_;
  std::optional<MonotonicTime> hold_until_;
  MemoryEvents events_;
  OwnLimitEvents own_events_;  // of the previous sample
};

}  // namespace cgphase
