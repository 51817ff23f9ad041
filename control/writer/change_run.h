// Applies one change to one container: check, lease, write, read back. If any part fails, the whole
// change is rolled back.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "control/fast_path/fast_path.h"
#include "control/lease/lease_table.h"
#include "control/limit_writer.h"
#include "control/writer/change_plan.h"

namespace cgphase {

// A container that is attached to the writer. The writer's threads share it.
struct TrackedCgroup {
  CgroupId id;
  CgroupPath path;
  Fd directory;
  // Increases with each raise and restore. A lowering submitted under an earlier epoch is
  // overtaken.
  std::atomic<std::uint64_t> epoch{0};
  std::mutex mutex;                              // protects raised_to
  std::array<KnobText, kKnobCount> raised_to{};  // value of the last raise or restore; empty if
                                                 // none
};

// What a run needs. Everything here outlives the run.
struct ChangeTools {
  LeaseTable& leases;
  FastPath* fast_path;  // null: no fast path (tests)
  const std::string& cgroup_root;
  // Whether another thread is lowering this container. If so, its leases are kept.
  std::function<bool(CgroupId)> lowering_elsewhere;
  // True once the deadline of this run has passed or the fast path has ended it.
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
  Result<Start> recheck(const ChangeStep& step) const;
  Status check_lease(const ChangeStep& step) const;
  Status check_after() const;
  void roll_back();

  const ChangeTools& tools_;
  TrackedCgroup& cgroup_;
  const LimitChange& change_;
  const std::uint64_t epoch_;
  std::vector<ChangeStep> steps_;
  std::vector<ChangeStep> begun_;  // steps whose write may have happened
};

// Releases the container's leases whose files contain their originals again. With the last lease
// the fast path stops watching the container.
void settle_leases(const ChangeTools& tools, const TrackedCgroup& cgroup);

}  // namespace cgphase
