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
#include "collectors/cgroup_id.h"
#include "collectors/ebpf/probe_source.h"
#include "collectors/limits.h"

namespace cgphase {

// Owned and used by the agent's thread alone.
class ForeignWrites {
 public:
  // Of one container, the newest; a write that says the same again takes the place of the first.
  static constexpr std::size_t kRemembered = 8;

  // Of other cgroups than `containers` nothing is kept.
  void remember(std::vector<LimitWrite> writes, std::span<const CgroupId> containers);
  void forget(CgroupId container) { writes_.erase(container.inode); }

  // The newest write since `since` whose value is in force, as "systemd (pid 1, init.scope) wrote
  // memory.max 536870912", printable; empty where none is known. One that the kernel refused is
  // told of only if it asked for what is in force.
  std::string writer(CgroupId container, const Limits& in_force, MonotonicTime since) const;

 private:
  std::map<std::uint64_t, std::deque<LimitWrite>> writes_;  // by inode, oldest first
};

// The unit that a cgroup belongs to, by the name of the innermost one; else the path itself.
std::string unit_of(const CgroupPath& path);

}  // namespace cgphase
