#include "agent/change_journal.h"

#include <utility>

#include "agent/observers/read_back.h"

namespace cgphase {
namespace {

// Entries that `explain` and `events` find in memory if the database is off or slow.
constexpr std::size_t kRecentEntries = 1000;

template <class Entry>
void push_bounded(std::deque<Entry>& entries, Entry entry) {
  if (entries.size() == kRecentEntries) entries.pop_front();
  entries.push_back(std::move(entry));
}

}  // namespace

void ChangeJournal::record(const TickOutput& output, const Core& core, MonotonicTime now) {
  for (const AppliedChange& change : output.applied)
    record(change, core.find(change.decision.container), now);
  for (const Decision& decision : output.decisions) {
    const auto writer = output.writers.find(decision.decision_id);
    record(decision, writer == output.writers.end() ? std::string() : writer->second,
           core.find(decision.container));
  }
  for (const Outcome& outcome : output.outcomes) record(outcome, core.find(outcome.container));
}

void ChangeJournal::record(const Decision& decision, std::string writer,
                           const ContainerView* view) {
  JournalDecision entry{wall_of(decision.time), decision, std::move(writer)};
  const bool refused = decision.verdict != Verdict::allowed;
  if (refused && view != nullptr && log_ != nullptr)
    log_->held(view->info, decision, entry.writer);
  if (refused && decision.verdict != Verdict::advise_mode && view != nullptr &&
      !share_.take(view->info.owner, decision.time))
    return;
  unsaved_decisions_.push_back(entry);
  push_bounded(recent_decisions_, std::move(entry));
}

void ChangeJournal::record(const Outcome& outcome, const ContainerView* view) {
  if (view != nullptr && log_ != nullptr) log_->concluded(view->info, outcome);
  JournalOutcome entry{wall_of(outcome.time), outcome};
  unsaved_outcomes_.push_back(entry);
  push_bounded(recent_outcomes_, std::move(entry));
}

// A change that no sample led to is a decision of its own.
void ChangeJournal::record(const AppliedChange& change, const ContainerView* view,
                           MonotonicTime now) {
  if (change.origin != AppliedChange::Origin::decision) record(change.decision, {}, view);
  if (view != nullptr && log_ != nullptr) {
    const auto entry = std::ranges::find(
        recent_decisions_, change.decision.decision_id,
        [](const JournalDecision& one) { return one.decision.decision_id; });
    log_->written(view->info, change.decision, change.in_force,
                  entry == recent_decisions_.end() ? std::string() : entry->writer);
  }
  const bool fast_path = change.origin == AppliedChange::Origin::fast_path;
  record(Outcome{.decision_id = change.decision.decision_id, .time = now,
                 .container = change.decision.container, .kind = OutcomeKind::written,
                 .detail = (fast_path ? "by the fast path: " : "") +
                           read_back_text(change.decision.old_limits, change.in_force)},
         view);
}

std::vector<JournalDecision> ChangeJournal::drain_decisions() {
  return std::exchange(unsaved_decisions_, {});
}
std::vector<JournalOutcome> ChangeJournal::drain_outcomes() {
  return std::exchange(unsaved_outcomes_, {});
}

WallTime ChangeJournal::wall_of(MonotonicTime time) const {
  return last_.wall_time + (time - last_.time);
}

}  // namespace cgphase
