#include "agent/history_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace cgphase {

// Every move of the clock is stored with the samples. Slewing moves it by less than this.
void HistoryFeed::follow_clock(const NodeSample& tick) {
  constexpr std::uint64_t kMoveMs = 20;
  const auto start = std::chrono::duration_cast<std::chrono::milliseconds>(
      tick.wall_time.time_since_epoch() - tick.time.time_since_epoch());
  if (start.count() < 0) return clock_start_ms_.reset();
  const auto now = static_cast<std::uint64_t>(start.count());
  const std::uint64_t known = clock_start_ms_.value_or(0);
  if (std::max(now, known) - std::min(now, known) > kMoveMs) clock_start_ms_ = now;
}

void HistoryFeed::add(const NodeSample& tick, const Core& core, ChangeJournal& journal) {
  std::vector<JournalDecision> decisions = journal.drain_decisions();
  std::vector<JournalOutcome> outcomes = journal.drain_outcomes();
  if (store_ == nullptr) return;
  follow_clock(tick);
  std::vector<HistoryPoint> points;
  points.reserve(tick.containers.size());
  for (const Sample& sample : tick.containers) {
    const ContainerView* view = core.find(sample.id);
    HistoryPoint& point = points.emplace_back(tick.wall_time, sample);
    point.host = tick.host;
    point.clock_start_ms = clock_start_ms_;
    if (view == nullptr) continue;
    point.phase = view->phase;
    point.original.cpu_max = view->original.cpu_max;
    if (view->original.memory_max || view->original.memory_high)
      point.original.memory_max = MemoryLimit{view->original.memory_bytes()};
  }
  std::vector<StoredContainer> names;
  if (store_->drain_name_request())
    for (const ContainerView* view : core.containers())
      names.push_back({view->info, tick.wall_time});
  store_->enqueue({.containers = std::move(names),
                   .points = std::move(points),
                   .decisions = std::move(decisions),
                   .outcomes = std::move(outcomes),
                   .time = tick.wall_time});
}

}  // namespace cgphase
