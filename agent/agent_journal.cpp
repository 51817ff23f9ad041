// What the agent keeps in the journal and in the history.
#include <algorithm>
#include <array>
#include <utility>

#include "agent/agent.h"
#include "agent/read_back.h"

namespace cgphase {
namespace {

// What `explain` and `events` find in memory when the database is off or slow.
constexpr std::size_t kRecentEntries = 1000;

template <class Entry>
void push_bounded(std::deque<Entry>& entries, Entry entry) {
  if (entries.size() == kRecentEntries) entries.pop_front();
  entries.push_back(std::move(entry));
}

}  // namespace

// The rails conclude that a write failed; the writer knows why.
void Agent::remember_outcomes() {
  for (Outcome& outcome : parts_.pipeline.take_outcomes()) {
    const auto error = write_errors_.find(outcome.decision_id);
    if (outcome.kind == OutcomeKind::write_failed && error != write_errors_.end())
      outcome.detail = error->second;
    remember(outcome);
  }
  write_errors_.clear();
}

void Agent::remember(const Decision& decision) {
  JournalDecision entry{wall_of(decision.time), decision, writer_of(decision)};
  unsaved_decisions_.push_back(entry);
  push_bounded(recent_decisions_, std::move(entry));
}

void Agent::remember(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::trial_reverted) totals_.trials_reverted += 1;
  JournalOutcome entry{wall_of(outcome.time), outcome};
  unsaved_outcomes_.push_back(entry);
  push_bounded(recent_outcomes_, std::move(entry));
}

void Agent::remember_written(const Decision& decision, const Limits& in_force, std::string by) {
  by += read_back_text(decision.old_limits, in_force);
  remember(Outcome{.decision_id = decision.decision_id, .time = clock_.monotonic_now(),
                   .container = decision.container, .kind = OutcomeKind::written,
                   .detail = std::move(by)});
}

// Where all is observed a hold is never journaled, so there is none to explain, and what tells of
// writes is not in the kernel. While it is loaded the loop stands still, and nothing is lowered
// yet.
void Agent::take_limit_writes() {
  if (!parts_.probes) return;
  parts_.probes->set_wanted(
      std::ranges::any_of(parts_.pipeline.containers(), [](const ContainerView* view) {
        return view->mode != Mode::observe;
      }));
  std::vector<LimitWrite> writes = parts_.probes->take_limit_writes();
  if (writes.empty() && !foreign_writes_.waits()) return;
  std::vector<ForeignWrites::Reading> readings;
  for (const Sample& sample : tick_.containers)
    if (const ContainerView* view = parts_.pipeline.find(sample.id))
      readings.push_back({sample.id, &view->sample.limits, &sample.limits});
  foreign_writes_.observe(std::move(writes), readings, tick_.time);
}

// Whose write holds it back, where that is known: not one from before the hold can have begun.
std::string Agent::writer_of(const Decision& decision) const {
  constexpr std::array kForTheWrite = {Verdict::standing_down, Verdict::silently_reverted,
                                       Verdict::rival};
  if (std::ranges::find(kForTheWrite, decision.verdict) == kForTheWrite.end()) return {};
  const auto longest = std::max<std::chrono::nanoseconds>(config_.rails.stand_down,
                                                          config_.rails.rival_pause);
  return foreign_writes_.writer(decision.container, decision.old_limits, decision.time - longest);
}

WallTime Agent::wall_of(MonotonicTime time) const {
  return tick_.wall_time + (time - tick_.time);
}

void Agent::store_tick() {
  if (!parts_.store) return;
  std::vector<HistoryPoint> points;
  points.reserve(tick_.containers.size());
  for (const Sample& sample : tick_.containers) {
    const ContainerView* view = parts_.pipeline.find(sample.id);
    HistoryPoint& point = points.emplace_back(tick_.wall_time, sample);
    point.host = tick_.host;
    if (view == nullptr) continue;
    point.phase = view->phase;
    point.original.cpu_max = view->original.cpu_max;
    point.original.memory_max = view->original.memory_max;
  }
  std::vector<StoredContainer> names;
  if (parts_.store->take_name_request())
    for (const ContainerView* view : parts_.pipeline.containers())
      names.push_back({view->info, tick_.wall_time});
  parts_.store->enqueue({.containers = std::move(names),
                         .points = std::move(points),
                         .decisions = std::exchange(unsaved_decisions_, {}),
                         .outcomes = std::exchange(unsaved_outcomes_, {})});
}

}  // namespace cgphase
