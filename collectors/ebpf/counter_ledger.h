// What the kernel counts by cgroup, made into counters of containers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "collectors/cgroup_id.h"

namespace cgphase {

// A container's counters never fall: what a cgroup counted stays with the container that had it,
// also when the cgroup is gone or turns out to be another container's. Owned by one thread.
template <std::size_t size>
class CounterLedger {
 public:
  using Counts = std::array<std::uint64_t, size>;

  // `now`: what the kernel has counted for a cgroup since its record was made. Without a container
  // it waits: one that is told of later gets it.
  void take(std::uint64_t cgroup, const Counts& now, const std::optional<CgroupId>& container) {
    if (!container) return;
    Counts& before = taken_[cgroup];
    Counts& sum = containers_[*container];
    for (std::size_t i = 0; i < size; ++i) sum[i] += now[i] - before[i];
    before = now;
  }

  // The kernel's record of this cgroup is no more, and another one begins at zero.
  void drop(std::uint64_t cgroup) { taken_.erase(cgroup); }
  void forget(CgroupId container) { containers_.erase(container); }

  // Zeros where nothing was counted.
  Counts of(CgroupId container) const {
    const auto found = containers_.find(container);
    return found == containers_.end() ? Counts{} : found->second;
  }

 private:
  std::map<std::uint64_t, Counts> taken_;  // by cgroup: what containers have of it
  std::map<CgroupId, Counts> containers_;
};

}  // namespace cgphase
