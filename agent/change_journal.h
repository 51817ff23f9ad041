// The journal of decisions and of what became of them: for the history, for the log, and in memory
// for `explain` and `events`.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "agent/logging/change_log.h"
#include "agent/logging/journal_share.h"
#include "base/clock.h"
#include "collectors/sample.h"
#include "core/core.h"
#include "storage/journal_event.h"

namespace cgphase {

// The agent's thread owns and uses it.
class ChangeJournal {
 public:
  // `log` may be null. `last` is the last sample: it relates monotonic time to wall time. Both
  // outlive the journal.
  ChangeJournal(ChangeLog* log, const NodeSample& last) : log_(log), last_(last) {}

  // Records everything in the output of one turn. `core` has taken that turn.
  void record(const TickOutput& output, const Core& core, MonotonicTime now);

  // The newest entries, also if there is no history. Oldest first, bounded.
  const std::deque<JournalDecision>& recent_decisions() const { return recent_decisions_; }
  const std::deque<JournalOutcome>& recent_outcomes() const { return recent_outcomes_; }
  // Entries that go to the history with the next tick.
  const std::vector<JournalDecision>& unsaved_decisions() const { return unsaved_decisions_; }
  const std::vector<JournalOutcome>& unsaved_outcomes() const { return unsaved_outcomes_; }
  std::vector<JournalDecision> drain_decisions();
  std::vector<JournalOutcome> drain_outcomes();
  // Refused decisions that exceeded the share of their user, since the start.
  std::uint64_t left_out() const { return share_.left_out(); }

 private:
  void record(const Decision& decision, std::string writer, const ContainerView* view);
  void record(const Outcome& outcome, const ContainerView* view);
  void record(const AppliedChange& change, const ContainerView* view, MonotonicTime now);
  WallTime wall_of(MonotonicTime time) const;

  ChangeLog* log_;
  const NodeSample& last_;
  JournalShare share_;
  std::deque<JournalDecision> recent_decisions_;
  std::deque<JournalOutcome> recent_outcomes_;
  std::vector<JournalDecision> unsaved_decisions_;
  std::vector<JournalOutcome> unsaved_outcomes_;
};

}  // namespace cgphase
