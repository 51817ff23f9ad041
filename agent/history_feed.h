// Feeds each tick into the history: samples with their phases, and the journal's new entries.
#pragma once

#include "agent/change_journal.h"
#include "base/units.h"
#include "collectors/sample.h"
#include "core/core.h"
#include "storage/store_thread.h"

namespace cgphase {

// The agent's thread owns and uses it.
class HistoryFeed {
 public:
  // `store` may be null: history is off. It outlives this object.
  explicit HistoryFeed(StoreThread* store) : store_(store) {}

  // Queues the tick. `core` has taken it. Drains the journal, also if history is off.
  void add(const NodeSample& tick, const Core& core, ChangeJournal& journal);

 private:
  void follow_clock(const NodeSample& tick);

  StoreThread* store_;
  Counter clock_start_ms_;  // wall time at the start of the monotonic clock
};

}  // namespace cgphase
