// The limit writer for a real kernel.
//
// Every limit is written by held descriptor. Two threads: one lowers and reclaims, the other
// raises, so that no raise waits behind a lowering that the kernel is still busy with. A raise also
// ends such a lowering of its own container. Restores run in the caller's thread. Every change is
// compared with what the file contains, leased before its first write, read back, and rolled back
// as a whole when any part of it fails.
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
#include "control/fast_path/guard.h"
#include "control/lease/lease_table.h"
#include "control/limit_writer.h"
#include "control/write_deadline.h"
#include "control/writer/change_run.h"

namespace cgphase {

// Changes that wait for a thread; a further one is refused at once.
inline constexpr std::size_t kQueuedChanges = 1024;

class KernelLimitWriter final : public LimitWriter {
 public:
  struct Options {
    std::string cgroup_root;
    LeaseTable* leases = nullptr;  // owned by this process; outlives the writer
    Guard* guard = nullptr;        // outlives the writer, which stops it at its end; null: no guard
    bool allow_plain_directory = false;  // tests: attach() takes what is no cgroup
    std::chrono::milliseconds lowering_deadline{2000};
    std::chrono::milliseconds reclaim_deadline{1000};
    std::chrono::milliseconds restore_wait{2000};  // for a lowering that is still under way
  };

  // Starts the threads. Errors: not_found (no such root), unsupported (not cgroup v2).
  static Result<std::unique_ptr<KernelLimitWriter>> create(const Options& options);
  // Changes that still wait are dropped; nothing is restored: call restore_all() first.
  ~KernelLimitWriter() override;

  // Errors: gone (the directory is not `id`), unsupported (not cgroup v2).
  Status attach(CgroupId id, const CgroupPath& path, Fd directory) override;
  // Leases of a cgroup that exists stay, so that restore_all() finds it by its path.
  void detach(CgroupId id) override;
  void submit(LimitChange change) override;
  // The result has decision id 0.
  void submit_reclaim(CgroupId id, Bytes bytes) override;
  int result_fd() const override { return result_event_.get(); }
  std::vector<LimitResult> take_results() override;
  RestoreReport restore_all() override;
  RestoreReport restore(CgroupId id) override;

  // The control loop lives: call it in every turn, at least once a second.
  void heartbeat(MonotonicTime now) { leases_.beat(now); }
  // The companion, or an operator, has put the originals back while this process was silent. Every
  // change is refused until the agent has read the limits anew and acknowledged.
  bool revoked() const { return leases_.revoked(); }
  void acknowledge_revocation();

  // What the leases that are held for it say: empty where no knob of it holds a value of ours.
  Limits leased_originals(CgroupId id) const;
  // Of these knobs those whose files say something else, ours or somebody's, or cannot be read.
  std::vector<Knob> not_original(CgroupId id) const;

  // Ends a lowering of this container that the kernel is still busy with. Any thread; takes no lock
  // and allocates nothing.
  void interrupt_lowering(CgroupId id);

 private:
  using Tracked = std::shared_ptr<TrackedCgroup>;
  struct Work {
    Tracked cgroup;
    LimitChange change;
    std::optional<Bytes> reclaim;  // instead of the change
    std::uint64_t epoch = 0;
  };
  // One thread and what waits for it.
  struct Lane {
    std::deque<Work> queue;
    std::condition_variable ready;
    std::thread thread;
  };

  explicit KernelLimitWriter(const Options& options);
  Status start();
  void run_lowering();
  void run_raising();
  // The next work of the lane; absent when the writer ends.
  std::optional<Work> next(Lane& lane);
  LimitResult carry_out(const Work& work, const ChangeTools& tools);
  void lower(const Work& work, WriteDeadline& deadline);
  void enqueue(Lane& lane, Work work);
  void deliver(LimitResult result);
  Tracked find(CgroupId id) const;
  ChangeTools tools(bool lowering_thread);
  void overtake(TrackedCgroup& cgroup, bool by_restore);
  bool wait_for_lowering(std::optional<CgroupId> id);
  RestoreReport restore_leased(std::optional<CgroupId> id);

  const Options options_;
  LeaseTable& leases_;
  Fd result_event_;

  std::mutex raise_or_restore_;  // held for one raise, or one restore, as a whole
  mutable std::mutex mutex_;     // guards all below
  std::map<CgroupId, Tracked> tracked_;
  Lane lowering_, raising_;
  std::optional<CgroupId> being_lowered_;
  std::condition_variable lowering_ended_;
  std::vector<LimitResult> results_;
  bool stopping_ = false;

  // Who is being lowered, for interrupt_lowering(): read without the mutex.
  std::atomic<std::uint64_t> lowering_inode_{0};
  std::atomic<WriteDeadline*> deadline_{nullptr};
  std::atomic<std::int64_t> deadline_ns_{0};
};

}  // namespace cgphase
