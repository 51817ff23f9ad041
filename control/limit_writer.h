// The only interface through which limits are changed.
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
  Limits old_limits;   // the values in force at the decision; another value in the file refuses it
  Limits new_limits;   // only knobs that differ from old_limits are written
  bool raise = false;  // raises use another thread and never wait behind a lowering
  bool grant = false;  // with `raise`: above the original, maybe the first change of the knob
  // A lowering is refused if a program has started in the container since. Absent: not checked.
  std::optional<MonotonicTime> decided = {};
  std::string reason;  // for the lease record
  // The lease ends then, even if this process hangs. A later write is refused. Absent: never.
  std::optional<MonotonicTime> deadline = {};
  // memory.high or memory.max is not lowered if need, reread just before the write, exceeds this.
  std::optional<Bytes> memory_need_ceiling;
};

struct LimitResult {
  std::uint64_t decision_id = 0;
  CgroupId id;
  bool written = false;
  bool overtaken = false;              // not written: a raise or a restore came first
  bool program_started = false;        // a program started first: not written, and the originals
                                       // are restored
  Limits in_force;                     // read back after the change or its rollback
  std::string error;                   // empty when written
  std::optional<ErrorKind> failed_as;  // set together with `error`: gone, invalid (refused),
                                       // denied, ...
  std::chrono::microseconds took{0};
};

// Implemented by the kernel writer, and by a recording writer in tests (which can fail on demand).
class LimitWriter {
 public:
  virtual ~LimitWriter() = default;
  // Starts tracking a container. The writer takes the descriptor of its directory.
  virtual Status attach(CgroupId id, const CgroupPath& path, Fd directory) = 0;
  virtual void detach(CgroupId id) = 0;
  // Never blocks the caller. The result comes through drain_results().
  virtual void submit(LimitChange change) = 0;
  // Reclaims `bytes` through memory.reclaim within a deadline. Leaves no state behind. Refused
  // while an earlier one of the container waits.
  virtual void submit_reclaim(CgroupId id, Bytes bytes) = 0;
  // Readable when results wait. -1 if results are available at once (recording writer).
  virtual int result_fd() const = 0;
  virtual std::vector<LimitResult> drain_results() = 0;
  // Restores originals by compare-and-set. Waits until done.
  struct RestoreReport {
    int restored = 0;  // knobs written back
    int foreign = 0;   // knobs that somebody else had changed; left unchanged
    int gone = 0;      // cgroups that no longer exist
    std::vector<Knob> left;  // knobs without their original: foreign, failed, or in use above it
    std::vector<std::string> failures;
  };
  virtual RestoreReport restore_all() = 0;
  virtual RestoreReport restore(CgroupId id) = 0;
};

}  // namespace cgphase
