// Samples cgroups by BPF walks. It keeps the list of cgroups, and calibrates the position of the
// lines of memory.stat in the kernel's numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collectors/cgroup_pull.h"
#include "collectors/memory_lines.h"
#include "collectors/node_sampler.h"
#include "collectors/pulled.h"

namespace cgphase {

// Owned and used by the sampler's thread.
class PullSession {
 public:
  // Without `open`, or if it fails, there are no records.
  explicit PullSession(OpenCgroupPull open) : open_(std::move(open)) {}

  bool active() const { return pull_ != nullptr; }
  bool one_flush() const { return pull_ != nullptr && pull_->one_flush(); }

  // Makes room for `cgroups` cgroups. True if all of them must be added again.
  bool make_room(std::size_t cgroups);
  // Returns a place; absent if there is none.
  std::optional<std::uint32_t> add(std::uint64_t inode);
  void remove(std::uint64_t inode, std::uint32_t place);

  // The cgroup whose memory.stat is read before and after a walk. Without a reading nothing is
  // calibrated.
  struct CalibrationTarget {
    std::uint64_t inode = 0;
    std::function<std::optional<MemoryLineValues>()> read;
  };
  // True if the next walk should have a target.
  bool needs_calibration(MonotonicTime now) const;
  // The inode of the cgroup with a mismatch; 0 for any.
  std::uint64_t preferred_target() const { return mismatch_; }

  void walk(MonotonicTime now, const CalibrationTarget& target);
  Pulled record(std::uint64_t inode, std::uint32_t place);

  Source source() const;

 private:
  OpenCgroupPull open_;
  std::unique_ptr<CgroupPull> pull_;
  std::size_t room_ = 0;
  std::string refusal_;
  MemoryLines lines_;
  bool chosen_ = false;  // the last walk used the choice of lines_
  std::uint64_t mismatch_ = 0;
  std::optional<MonotonicTime> last_calibration_;
};

}  // namespace cgphase
