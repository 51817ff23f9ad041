// The thread that owns the Store, so that no other thread waits for a disk.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/store.h"

namespace cgphase {

// All functions may be called from any thread. Only flush_and_stop() and the destructor wait for
// the disk. Entries that cannot be written stay in the queue, and the next batch retries them. A
// full queue drops its oldest samples first, then decisions and outcomes, and containers last.
class StoreThread {
 public:
  struct Options {
    std::size_t queue_bound = 16384;  // points, decisions, outcomes and containers together
    std::size_t query_bound = 64;
  };

  struct Batch {
    std::vector<StoredContainer> containers;
    std::vector<HistoryPoint> points;
    std::vector<JournalDecision> decisions;
    std::vector<JournalOutcome> outcomes;
    // The time of the tick: it makes older samples due, even without entries. The default is the
    // time of the last point.
    std::optional<WallTime> time = {};
  };

  struct Counts {
    std::uint64_t queued = 0;
    std::uint64_t written = 0;          // entries that the Store has accepted
    std::uint64_t dropped_points = 0;   // by this thread and by the Store
    std::uint64_t dropped_journal = 0;  // decisions, outcomes and containers
    std::uint64_t refused_queries = 0;
    std::uint64_t damaged = 0;  // blocks and journal rows that reading left out
    std::string quarantined;    // the new name of the last replaced file, or empty
  };

  // If no thread can be started, all entries are dropped and counted, and degraded() has the
  // reason.
  explicit StoreThread(Store store) : StoreThread(std::move(store), Options{}) {}
  StoreThread(Store store, const Options& options);
  ~StoreThread();  // flush_and_stop()
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  // After flush_and_stop() all entries are dropped and counted.
  void enqueue(Batch batch);

  // Runs `work` on the storage thread, after an attempt to write all earlier batches. `work` passes
  // its result on by itself and must not throw. An accepted query runs exactly once, also while
  // stopping. False if the queue of queries is full or the thread has stopped.
  [[nodiscard]] bool query(std::function<void(Store&)> work);

  // True once after the file was opened again or replaced. Names of live containers may be missing:
  // enqueue them again.
  bool drain_name_request();

  // Writes the queue and ends the thread. The error says how many entries are lost. Later calls
  // return the same.
  Status flush_and_stop();

  Counts counts() const;
  // Why the last write failed or samples are being dropped; absent otherwise.
  std::optional<std::string> degraded() const;

 private:
  void run();
  void write(Batch& batch);
  void drop_excess();
  void publish();

  const Options options_;

  // The thread's own.
  Store store_;
  Status last_status_;
  std::uint64_t reopen_count_ = 0;

  mutable std::mutex mutex_;  // of the members up to stop_mutex_
  std::condition_variable wake_;
  Batch backlog_;
  bool fresh_ = false;  // a batch came since the last attempt
  std::deque<std::function<void(Store&)>> queries_;
  bool stopping_ = false;
  Counts counts_;
  std::uint64_t store_dropped_ = 0;  // samples dropped by the Store
  std::optional<std::string> degraded_;
  bool names_wanted_ = false;

  std::mutex stop_mutex_;  // one caller of flush_and_stop() at a time
  std::optional<Status> stopped_;
  std::thread thread_;
};

}  // namespace cgphase
