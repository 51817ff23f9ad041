// Who made a limit what it is: somebody else's writes to our containers' limits, as far as the
// kernel tells of them, and which of them explains what is found in force.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/limits.h"
#include "collectors/sample.h"

namespace cgphase {

// Owned and used by the agent's thread alone.
class ForeignWrites {
 public:
  // Of one container, the newest; a write that says the same again takes the place of the first.
  static constexpr std::size_t kRemembered = 8;
  // That may be newer than what was read of limits.
  static constexpr std::size_t kWaiting = 2340;

  // A container's limits as they were read, and before that.
  struct Reading {
    CgroupId container;
    const Limits* before = nullptr;
    const Limits* now = nullptr;
  };
  // At each tick, with what the kernel told since the last. Kept is what changed a limit of these
  // containers: its value is in force now, and was not before. What was written after `begin`, when
  // the reading began, may not have been read yet, and is judged again the next time.
  void observe(std::vector<LimitWrite> writes, std::span<const Reading> readings,
               MonotonicTime begin);
  // Whether observe() has something to judge without new writes too.
  bool waits() const { return !waiting_.empty(); }
  // Without asking what it changed. Of other cgroups than `containers` nothing is kept.
  void remember(std::vector<LimitWrite> writes, std::span<const CgroupId> containers);
  void forget(CgroupId container) { writes_.erase(container.inode); }

  // The newest write since `since` whose value is in force, as "systemd (pid 1, init.scope) wrote
  // memory.max 536870912", printable, and names in quotes that have anything but letters, digits
  // and -_.:@+/ or an escape; empty where none is known. One that the kernel refused is told of
  // only if it asked for what is in force.
  std::string writer(CgroupId container, const Limits& in_force, MonotonicTime since) const;

 private:
  std::map<std::uint64_t, std::deque<LimitWrite>> writes_;  // by inode, oldest first
  std::vector<LimitWrite> waiting_;                         // to be judged again
};

// The unit that a cgroup belongs to, by the name of the innermost one; else the path itself.
std::string unit_of(const CgroupPath& path);

}  // namespace cgphase
