#include "policy/safety/event_tracker.h"

#include <algorithm>
#include <utility>

namespace cgphase {
namespace {

bool fell(const Counter& before, const Counter& now) { return before && now && *now < *before; }

bool went_up(const Counter& before, const Counter& now) {
  return growth(now, before).value_or(0) > 0;
}

bool counters_fell(const Sample& before, const Sample& now) {
  return fell(before.cpu.usage_usec, now.cpu.usage_usec) ||
         fell(before.cpu.throttled_usec, now.cpu.throttled_usec) ||
         fell(before.memory.pgfault, now.memory.pgfault) ||
         fell(before.memory_events.max, now.memory_events.max) ||
         fell(before.memory_events.oom_kill, now.memory_events.oom_kill);
}

}  // namespace

void EventTracker::add(const SafetyInput& input) {
  judge_freshness(input);
  follow_events(input);
}

void EventTracker::hold(MonotonicTime until) {
  hold_until_ = hold_until_ ? std::max(*hold_until_, until) : until;
}

void EventTracker::judge_freshness(const SafetyInput& input) {
  const Sample& now = *input.sample;
  const std::optional<bool> before = populated_;
  emptied_ = now.populated == false;
  started_ = before == false && now.populated == true;
  if (started_ || now.programs.started || (!before && now.populated == true))
    program_started(input.time);
  if (now.populated) populated_ = now.populated;
  const bool reset = input.previous && counters_fell(*input.previous, now);
  const bool thawed = input.previous && input.previous->frozen == true && now.frozen != true;
  const bool stopped = sources_.lost(now);  // called for every sample, because it compares with the
                                            // previous one
  lost_ = input.gap || now.frozen == true || thawed || emptied_ || reset || stopped;
  if (lost_) hold(input.time + config_.settle);
  const bool first = !input.previous || !(input.interval_seconds > 0);
  stale_ = first || lost_ || (hold_until_ && input.time < *hold_until_);
}

// Events also count over gaps, so they are compared with the last ones seen, not with `previous`.
// If a cgroup below this one reaches its own limit and is killed for it, that is no event of ours.
// If the kernel does not distinguish them, every event counts.
void EventTracker::follow_events(const SafetyInput& input) {
  const MemoryEvents& now = input.sample->memory_events;
  const OwnLimitEvents own = input.sample->own_limit_events;
  const OwnLimitEvents own_before = std::exchange(own_events_, own);
  const bool told_max = own.max && own_before.max, told_oom = own.oom && own_before.oom;
  max_event_ = told_max ? went_up(own_before.max, own.max) : went_up(events_.max, now.max);
  limit_met_ = told_oom ? went_up(own_before.oom, own.oom) : went_up(events_.oom, now.oom);
  const bool below = told_oom && !limit_met_ && went_up(events_.oom, now.oom);
  oom_event_ = limit_met_ || (went_up(events_.oom_kill, now.oom_kill) && !below);
  const auto keep = [](Counter& kept, const Counter& seen) {
    if (seen) kept = seen;
  };
  keep(events_.max, now.max);
  keep(events_.oom, now.oom);
  keep(events_.oom_kill, now.oom_kill);
}

}  // namespace cgphase
