// One change of one container, from the look before to the look after: lease, write, read back,
// and roll back all of it where any part fails.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "control/fast_path/guard.h"
#include "control/lease/lease_table.h"
#include "control/limit_writer.h"
#include "control/writer/change_plan.h"

namespace cgphase {

// A container that the writer was told of. Shared by its threads.
struct TrackedCgroup {
  CgroupId id;
  CgroupPath path;
  Fd directory;
  // Grows with each raise and restore; a lowering that was asked for under an earlier one is
  // overtaken.
  std::atomic<std::uint64_t> epoch{0};
  std::mutex mutex;                              // guards raised_to
  std::array<KnobText, kKnobCount> raised_to{};  // by the last raise or restore; empty where none
};

// What a run works with; all outlive it.
struct ChangeTools {
  LeaseTable& leases;
  Guard* guard;                   // null: nobody guards (tests)
  const std::string& cgroup_root;
  // Whether another thread is lowering this container: then its records are kept for it.
  std::function<bool(CgroupId)> lowering_elsewhere;
  // True once the deadline of this run has passed or the guard has ended it.
  std::function<bool()> expired;
};

class ChangeRun {
 public:
  ChangeRun(const ChangeTools& tools, TrackedCgroup& cgroup, const LimitChange& change,
            std::uint64_t epoch);
  LimitResult run();

 private:
  Status apply();
  Status check_identity() const;
  Status lease_steps();
  Status write_steps();
  bool overtaken() const;
  bool program_started() const;
  Status still_wanted() const;
  Status write_step(const ChangeStep& step);
  Status make_room(const ChangeStep& step) const;
  enum class Start { as_planned, higher_already };
  Result<Start> look_again(const ChangeStep& step) const;
  Status check_after() const;
  void roll_back();

  const ChangeTools& tools_;
  TrackedCgroup& cgroup_;
  const LimitChange& change_;
  const std::uint64_t epoch_;
  std::vector<ChangeStep> steps_;
  std::vector<ChangeStep> begun_;  // those whose write may have taken place
};

// Releases the container's leases whose files hold their originals again, and the guard's slot with
// the last of them.
void settle_leases(const ChangeTools& tools, const TrackedCgroup& cgroup);

// memory.reclaim of `bytes` in bounded pieces until `expired`; what was dropped may be less
// (EAGAIN, EINTR), which is no error. Errors: not_found (the kernel has no memory.reclaim), gone,
// denied.
Status reclaim_memory(int directory_fd, Bytes bytes, const std::function<bool()>& expired);

}  // namespace cgphase
