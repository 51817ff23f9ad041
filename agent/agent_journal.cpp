// What the agent keeps in the journal and in the history, and tells the log.
#include <algorithm>
#include <array>
#include <utility>

#include "agent/agent.h"
#include "agent/observers/read_back.h"
#include "cgroupfs/knob_file.h"
#include "policy/safety/limit_arithmetic.h"

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

// Null where there is no log, or no such container any more.
const ContainerView* Agent::logged(CgroupId id) const {
  return parts_.log == nullptr ? nullptr : parts_.pipeline.find(id);
}

void Agent::remember(const Decision& decision) {
  const ContainerView* const view = parts_.pipeline.find(decision.container);
  JournalDecision entry{wall_of(decision.time), decision, writer_of(decision)};
  const bool refused = decision.verdict != Verdict::allowed;
  if (refused && view != nullptr && parts_.log != nullptr)
    parts_.log->held(view->info, decision, entry.writer);
  if (refused && decision.verdict != Verdict::advise_mode && view != nullptr &&
      !journal_share_.take(view->info.owner, decision.time))
    return;
  unsaved_decisions_.push_back(entry);
  push_bounded(recent_decisions_, std::move(entry));
}

void Agent::remember(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::trial_reverted) totals_.trials_reverted += 1;
  if (const ContainerView* view = logged(outcome.container))
    parts_.log->concluded(view->info, outcome);
  JournalOutcome entry{wall_of(outcome.time), outcome};
  unsaved_outcomes_.push_back(entry);
  push_bounded(recent_outcomes_, std::move(entry));
}

void Agent::remember_written(const Decision& decision, const Limits& in_force, std::string by) {
  if (const ContainerView* view = logged(decision.container))
    parts_.log->written(view->info, decision, in_force);
  by += read_back_text(decision.old_limits, in_force);
  remember(Outcome{.decision_id = decision.decision_id, .time = clock_.monotonic_now(),
                   .container = decision.container, .kind = OutcomeKind::written,
                   .detail = std::move(by)});
}

// Tells the pipeline that limits are the originals again, but for those `left`, and the journal
// why: one resource after the other, so that each decision says what there was before.
void Agent::note_restored(const ContainerView& view, Reason reason, std::span<const Knob> left) {
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    const bool cpu = resource == Resource::cpu;
    if (is_original(view.in_force, view.original, resource)) continue;
    if (std::ranges::find(left, cpu ? Knob::cpu_max : Knob::memory_high) != left.end()) continue;
    Limits restored = view.in_force;
    for (const Knob knob : kKnobs)
      if (resource_of(knob) == resource && std::ranges::find(left, knob) == left.end())
        copy_knob(knob, view.original, restored);
    const Decision raise = parts_.pipeline.guard_raised(view.info.id, resource, reason, restored,
                                                        clock_.monotonic_now());
    remember(raise);
    remember_written(raise, restored, {});
    totals_.writes_up += 1;
  }
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

// A clock that is only slewed moves by less than matters, and each move is stored.
void Agent::follow_clock() {
  constexpr std::uint64_t kMoveMs = 20;
  const auto start = std::chrono::duration_cast<std::chrono::milliseconds>(
      tick_.wall_time.time_since_epoch() - tick_.time.time_since_epoch());
  if (start.count() < 0) return clock_start_ms_.reset();
  const auto now = static_cast<std::uint64_t>(start.count());
  const std::uint64_t known = clock_start_ms_.value_or(0);
  if (std::max(now, known) - std::min(now, known) > kMoveMs) clock_start_ms_ = now;
}

void Agent::store_tick() {
  if (!parts_.store) {
    unsaved_decisions_.clear();
    unsaved_outcomes_.clear();
    return;
  }
  follow_clock();
  std::vector<HistoryPoint> points;
  points.reserve(tick_.containers.size());
  for (const Sample& sample : tick_.containers) {
    const ContainerView* view = parts_.pipeline.find(sample.id);
    HistoryPoint& point = points.emplace_back(tick_.wall_time, sample);
    point.host = tick_.host;
    point.clock_start_ms = clock_start_ms_;
    if (view == nullptr) continue;
    point.phase = view->phase;
    point.original.cpu_max = view->original.cpu_max;
    if (view->original.memory_max || view->original.memory_high)
      point.original.memory_max = MemoryLimit{view->original.memory_bytes()};
  }
  std::vector<StoredContainer> names;
  if (parts_.store->take_name_request())
    for (const ContainerView* view : parts_.pipeline.containers())
      names.push_back({view->info, tick_.wall_time});
  parts_.store->enqueue({.containers = std::move(names),
                         .points = std::move(points),
                         .decisions = std::exchange(unsaved_decisions_, {}),
                         .outcomes = std::exchange(unsaved_outcomes_, {}),
                         .time = tick_.wall_time});
}

}  // namespace cgphase
