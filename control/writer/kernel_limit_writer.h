// The limit writer for a real kernel.
//
// Every limit is written through an open directory descriptor. There are two threads. One lowers
// and reclaims; the other raises, so that no raise waits behind a lowering that blocks in the
// kernel. A raise also ends such a lowering of its own container. Restores run in the caller's
// thread.
//
// Every change is compared with the file, leased before its first write, and read back. If any part
// fails, the whole change is rolled back.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "control/fast_path/fast_path.h"
#include "control/lease/lease_table.h"
#include "control/limit_writer.h"
#include "control/write_deadline.h"
#include "control/writer/change_run.h"

namespace cgphase {

// Maximum number of waiting changes per thread. A further one is refused at once.
inline constexpr std::size_t kQueuedChanges = 1024;

class KernelLimitWriter final : public LimitWriter {
 public:
  struct Options {
    std::string cgroup_root;
    LeaseTable* leases = nullptr;  // owned by this process; outlives the writer
    FastPath* fast_path = nullptr;        // outlives the writer, which stops it; null: no fast path
    bool allow_plain_directory = false;  // tests: attach() accepts a directory that is not a cgroup
    std::chrono::milliseconds lowering_deadline{2000};
    std::chrono::milliseconds reclaim_deadline{1000};
    std::chrono::milliseconds restore_wait{2000};  // for a lowering in progress
  };

  // Starts the threads. Errors: not_found (no such root), unsupported (not cgroup v2).
  static Result<std::unique_ptr<KernelLimitWriter>> create(const Options& options);
  // Waiting changes are dropped. Nothing is restored: call restore_all() first.
  ~KernelLimitWriter() override;

  // Errors: gone (the directory is not `id`), unsupported (not cgroup v2).
  Status attach(CgroupId id, const CgroupPath& path, Fd directory) override;
  // Keeps the leases of a cgroup that still exists; restore_all() finds it by its path.
  void detach(CgroupId id) override;
  void submit(LimitChange change) override;
  // The result has decision id 0.
  void submit_reclaim(CgroupId id, Bytes bytes) override;
  int result_fd() const override { return result_event_.get(); }
  std::vector<LimitResult> drain_results() override;
  RestoreReport restore_all() override;
  RestoreReport restore(CgroupId id) override;

  // Call it in every iteration of the control loop, at least once a second.
  void heartbeat(MonotonicTime now) { leases_.beat(now); }
  // True after the companion or an operator restored the originals while this process was silent.
  // Every change is refused until the agent has reread the limits and acknowledged.
  bool revoked() const { return leases_.revoked(); }
  void acknowledge_revocation();

  // The originals in this container's leases. Empty if no knob is leased.
  Limits leased_originals(CgroupId id) const;
  // The leased knobs whose files do not contain the original (any other value), or cannot be read.
  std::vector<Knob> not_original(CgroupId id) const;

  // Releases leases of thawed containers. Call it once per tick: the same value may soon be
  // somebody else's choice.
  void settle_thawed();

  // Ends a lowering of this container that blocks in the kernel. Any thread may call it. Takes no
  // lock and allocates nothing.
  void interrupt_lowering(CgroupId id);

 private:
  using Tracked = std::shared_ptr<TrackedCgroup>;
  struct Work {
    Tracked cgroup;
    LimitChange change;
    std::optional<Bytes> reclaim;  // instead of the change
    std::uint64_t epoch = 0;
  };
  // One thread and its queue.
  struct WorkQueue {
    std::deque<Work> waiting;
    std::condition_variable ready;
    std::thread thread;
  };

  explicit KernelLimitWriter(const Options& options);
  Status start();
  void run_lowering();
  void run_raising();
  // The next work of the queue. Absent when the writer ends.
  std::optional<Work> next(WorkQueue& queue);
  LimitResult carry_out(const Work& work, const ChangeTools& tools);
  void lower(const Work& work, WriteDeadline& deadline);
  void enqueue(WorkQueue& queue, Work work);
  void deliver(LimitResult result);
  Tracked find(CgroupId id) const;
  std::vector<Tracked> all_tracked() const;
  ChangeTools tools(bool lowering_thread);
  void overtake(TrackedCgroup& cgroup, bool by_restore);
  bool wait_for_lowering(std::optional<CgroupId> id);
  RestoreReport restore_leased(std::optional<CgroupId> id);

  const Options options_;
  LeaseTable& leases_;
  Fd result_event_;

  std::uint64_t settled_deadlines_ = 0;  // LeaseTable::deadlines() when no freeze was leased

  std::mutex raise_or_restore_;  // locked for one whole raise or restore
  mutable std::mutex mutex_;     // protects everything below
  std::map<CgroupId, Tracked> tracked_;
  WorkQueue lowering_, raising_;
  std::optional<CgroupId> being_lowered_;
  std::condition_variable lowering_ended_;
  std::vector<LimitResult> results_;
  bool stopping_ = false;

  // The container being lowered, for interrupt_lowering(), which reads it without the mutex.
  std::atomic<std::uint64_t> lowering_inode_{0};
  std::atomic<WriteDeadline*> deadline_{nullptr};
  std::atomic<std::int64_t> deadline_ns_{0};
};

}  // namespace cgphase
