// The thread that owns the Store, so that no other ever waits for a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/store.h"

namespace cgphase {

// All functions may be called from any thread; none of them waits for the disk, but
// flush_and_stop() and the destructor. What cannot be written is kept and tried again with the next
// batch; beyond `queue_bound` entries the oldest samples are dropped, and only when there is none
// left the oldest decisions and outcomes, and last the containers.
class StoreThread {
 public:
  struct Options {
    std::size_t queue_bound = 16384;  // points, decisions, outcomes and containers together
    std::size_t query_bound = 64;     // queries that wait
  };

  struct Batch {
    std::vector<StoredContainer> containers;
    std::vector<HistoryPoint> points;
    std::vector<JournalDecision> decisions;
    std::vector<JournalOutcome> outcomes;
    // Of its tick, also of one that has nothing else: samples that are due are written then.
    // Without one, that of the last point.
    std::optional<WallTime> time = {};
  };

  struct Counts {
    std::uint64_t queued = 0;   // entries that wait now
    std::uint64_t written = 0;  // entries the Store has taken
    std::uint64_t dropped_points = 0;   // by this thread and by the Store
    std::uint64_t dropped_journal = 0;  // decisions, outcomes and containers
    std::uint64_t refused_queries = 0;
    std::uint64_t damaged = 0;  // blocks and journal rows that reading had to leave out
    std::string quarantined;    // where the last corrupt file went; empty: there was none
  };

  // Where no thread can be started everything is dropped and counted, and degraded() says why.
  explicit StoreThread(Store store) : StoreThread(std::move(store), Options{}) {}
  StoreThread(Store store, const Options& options);
  ~StoreThread();  // flush_and_stop()
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  // After flush_and_stop() everything is dropped and counted.
  void enqueue(Batch batch);

  // Runs `work` on the storage thread, after the batches that were enqueued before it were tried.
  // It hands its result on by itself (posts it to the caller's event loop) and must not throw.
  // False when too many wait or the thread has stopped: then `work` is never run. An accepted one
  // is run exactly once, also while stopping.
  [[nodiscard]] bool query(std::function<void(Store&)> work);

  // The same for a question that changes nothing. While the file cannot be read it is put to a
  // store in memory of all that waits, whose unreadable() says why.
  [[nodiscard]] bool ask(std::function<void(Store&)> question);

  // True once after the names of containers that live may be missing: the file was let go, or
  // replaced by a new one. To be given again with a batch.
  bool take_name_request();

  // Writes what waits and ends the thread; the error says what was lost. Later calls return the
  // same.
  Status flush_and_stop();

  Counts counts() const;
  // Why the last write failed, or why samples are kept from the disk; absent while all is well.
  std::optional<std::string> degraded() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
