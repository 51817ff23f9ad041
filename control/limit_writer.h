// The one door through which limits are changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/limits.h"

namespace cgphase {

struct LimitChange {
  std::uint64_t decision_id = 0;
  CgroupId id;
  CgroupPath path;
  Limits old_limits;   // what the decision was made on; another value in the file refuses it
  Limits new_limits;   // only knobs that differ from old_limits are written
  bool raise = false;  // fast path: raw held descriptors, never waits behind a lowering
  // A lowering is void where a program has started in the container since. Absent: not asked.
  std::optional<MonotonicTime> decided = {};
  std::string reason;  // for the lease record
  // Lowering memory.high is skipped when need, read again just before the write, exceeds this.
  std::optional<Bytes> memory_need_ceiling;
};

struct LimitResult {
  std::uint64_t decision_id = 0;
  CgroupId id;
  bool written = false;
  bool overtaken = false;              // not written: a raise or a restore came first
  bool program_started = false;        // not written, and the originals are back: one came first
  Limits in_force;                     // read back after the change or its roll-back
  std::string error;                   // empty when written
  std::optional<ErrorKind> failed_as;  // with `error`: gone, invalid (refused), denied, ...
  std::chrono::microseconds took{0};
};

// Real, recording (dry run), or failing on demand in tests.
class LimitWriter {
 public:
  virtual ~LimitWriter() = default;
  // Tracks a container by a descriptor of its directory; the writer owns it.
  virtual Status attach(CgroupId id, const CgroupPath& path, Fd directory) = 0;
  virtual void detach(CgroupId id) = 0;
  // Never blocks the caller; the result comes through take_results().
  virtual void submit(LimitChange change) = 0;
  // memory.reclaim of `bytes`, bounded by a deadline; leaves no state.
  virtual void submit_reclaim(CgroupId id, Bytes bytes) = 0;
  // Readable when results wait. -1 where results are there at once (recording writer).
  virtual int result_fd() const = 0;
  virtual std::vector<LimitResult> take_results() = 0;
  // Puts back every original that is still ours, compare-and-set; waits until done.
  struct RestoreReport {
    int restored = 0;  // knobs written back
    int foreign = 0;   // knobs that somebody else had changed: left alone
    int gone = 0;      // cgroups that no longer exist
    std::vector<Knob> left;  // that are not the originals: of somebody else, or failed
    std::vector<std::string> failures;
  };
  virtual RestoreReport restore_all() = 0;
  virtual RestoreReport restore(CgroupId id) = 0;
};

}  // namespace cgphase
