// Sampling by walks: which cgroups are walked over, and what must be learned of the kernel before
// all that a walk tells is understood.
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
  // Without `open`, or where it refuses, nothing is ever told.
  explicit PullSession(OpenCgroupPull open) : open_(std::move(open)) {}

  bool active() const { return pull_ != nullptr; }
  bool one_flush() const { return pull_ != nullptr && pull_->one_flush(); }

  // Makes room for so many cgroups. True when all of them have to be added anew.
  bool make_room(std::size_t cgroups);
  // A place, or nothing.
  std::optional<std::uint32_t> add(std::uint64_t inode);
  void remove(std::uint64_t inode, std::uint32_t place);

  // Who is asked for memory.stat before and after a walk. No reading teaches nothing.
  struct Pupil {
    std::uint64_t inode = 0;
    std::function<std::optional<MemoryLineValues>()> read;
  };
  // Whether the next walk should have a pupil.
  bool wants_lesson(MonotonicTime now) const;
  // The inode of the cgroup that surprised; 0 for any.
  std::uint64_t wanted_pupil() const { return surprised_; }

  void walk(MonotonicTime now, const Pupil& pupil);
  Pulled told(std::uint64_t inode, std::uint32_t place);

  Source source() const;

 private:
  OpenCgroupPull open_;
  std::unique_ptr<CgroupPull> pull_;
  std::size_t room_ = 0;
  std::string refusal_;
  MemoryLines lines_;
  bool chosen_ = false;  // the last walk brought what lines_ would have
  std::uint64_t surprised_ = 0;
  std::optional<MonotonicTime> last_lesson_;
};

}  // namespace cgphase
