// Turns the kernel's counts per cgroup into counters of containers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/sample.h"

namespace cgphase {

// The sums of each container, as the words of one kind of ledger.
using ContainerSums = std::map<CgroupId, std::vector<std::uint64_t>>;

// A container's counters never fall. The counts of a cgroup stay with its container, even if the
// cgroup is removed or later belongs to another container. Owned by one thread.
template <std::size_t size>
class CounterLedger {
 public:
  using Counts = std::array<std::uint64_t, size>;
  struct Container {
    Counts sum{};
    // Not a sum: the maximum of a value since the reading with that number.
    std::uint64_t highest = 0, reading = 0;

    // Adds the counts of a cgroup that this container does not have yet.
    void add(const Counts& now, Counts& taken) {
      for (std::size_t i = 0; i < size; ++i) sum[i] += now[i] - taken[i];
      taken = now;
    }
  };

  // `now` is the kernel's count for a cgroup since its record was created. Without a container the
  // count waits: a later call with a container adds all of it.
  void take(std::uint64_t cgroup, const Counts& now, const std::optional<CgroupId>& container) {
    if (!container) return;
    containers_[*container].add(now, taken_[cgroup]);
  }
  // The reference is valid until the container is forgotten.
  Container& container(CgroupId id) { return containers_[id]; }

  // The kernel's record of this cgroup was deleted; a new one starts at zero.
  void drop(std::uint64_t cgroup) { taken_.erase(cgroup); }
  void forget(CgroupId container) { containers_.erase(container); }

  // For another ledger of this kind, which continues from these sums before it takes anything.
  ContainerSums container_sums() const {
    ContainerSums all;
    for (const auto& [id, container] : containers_)
      all[id].assign(container.sum.begin(), container.sum.end());
    return all;
  }
  void continue_from(const ContainerSums& previous) {
    for (const auto& [id, words] : previous) {
      CHECK_INVARIANT(words.size() == size);
      std::ranges::copy(words, containers_[id].sum.begin());
    }
  }

  // True if anything was ever counted for it.
  bool has(CgroupId container) const { return containers_.contains(container); }
  // Zeros if nothing was counted.
  Counts of(CgroupId container) const {
    const auto found = containers_.find(container);
    return found == containers_.end() ? Counts{} : found->second.sum;
  }
  // Calls `each` with (Sample&, const Container&) for all samples, which ascend by id. With
  // `complete`, a container without counts has zeros. Otherwise it is skipped, because nothing is
  // known of it.
  template <class Each>
  void for_each(std::span<Sample> samples, bool complete, Each each) const {
    static constexpr Container kNothing{};
    auto at = containers_.begin();
    for (Sample& sample : samples) {
      while (at != containers_.end() && at->first < sample.id) ++at;
      const bool found = at != containers_.end() && at->first == sample.id;
      if (found || complete) each(sample, found ? at->second : kNothing);
    }
  }

 private:
  std::map<std::uint64_t, Counts> taken_;  // by cgroup: the counts that containers already have
  std::map<CgroupId, Container> containers_;
};

}  // namespace cgphase
