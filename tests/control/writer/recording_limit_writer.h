// A limit writer that writes nothing. It records every request and answers as if it were done.
// Tests can also make it fail.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "control/limit_writer.h"

namespace cgphase {

// Used by one thread. Results are available at once; result_fd() is -1.
class RecordingLimitWriter final : public LimitWriter {
 public:
  static constexpr std::size_t kRemembered = 1024;  // the newest changes are kept, older ones are
                                                    // dropped

  struct Reclaim {
    CgroupId id;
    Bytes bytes;
  };

  Status attach(CgroupId id, const CgroupPath& path, Fd directory) override;
  void detach(CgroupId id) override;
  void submit(LimitChange change) override;
  void submit_reclaim(CgroupId id, Bytes bytes) override;
  int result_fd() const override { return -1; }
  std::vector<LimitResult> drain_results() override;
  // Counts the knobs that differ from their values before the first change.
  RestoreReport restore_all() override;
  RestoreReport restore(CgroupId id) override;

  // The changes that would have been written, oldest first.
  const std::deque<LimitChange>& changes() const { return changes_; }
  const std::deque<Reclaim>& reclaims() const { return reclaims_; }
  // The limits that would be in force. Before any change: old_limits of the last request.
  const Limits* limits(CgroupId id) const;
  bool attached(CgroupId id) const { return attached_.contains(id); }

  // The next `count` changes fail with `error` and change nothing.
  void fail_next(int count, Error error);

 private:
  struct State {
    Limits original, now;
  };
  std::map<CgroupId, CgroupPath> attached_;
  std::map<CgroupId, State> states_;
  std::deque<LimitChange> changes_;
  std::deque<Reclaim> reclaims_;
  std::vector<LimitResult> results_;
  int failures_left_ = 0;
  Error failure_;
};

}  // namespace cgphase
