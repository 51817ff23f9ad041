// What the kernel counts by cgroup, made into counters of containers.
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

// What each container has, in the words of one kind of ledger.
using ContainerSums = std::map<CgroupId, std::vector<std::uint64_t>>;

// A container's counters never fall: what a cgroup counted stays with the container that had it,
// also when the cgroup is gone or turns out to be another container's. Owned by one thread.
template <std::size_t size>
class CounterLedger {
 public:
  using Counts = std::array<std::uint64_t, size>;
  struct Container {
    Counts sum{};
    // What is no sum: the highest of something since the reading of that number.
    std::uint64_t highest = 0, reading = 0;

    // Of what a cgroup has counted now, what this container does not have yet.
    void add(const Counts& now, Counts& taken) {
      for (std::size_t i = 0; i < size; ++i) sum[i] += now[i] - taken[i];
      taken = now;
    }
  };

  // `now`: what the kernel has counted for a cgroup since its record was made. Without a container
  // it waits: one that is told of later gets it.
  void take(std::uint64_t cgroup, const Counts& now, const std::optional<CgroupId>& container) {
    if (!container) return;
    containers_[*container].add(now, taken_[cgroup]);
  }
  // Stays where it is until it is forgotten.
  Container& container(CgroupId id) { return containers_[id]; }

  // The kernel's record of this cgroup is no more, and another one begins at zero.
  void drop(std::uint64_t cgroup) { taken_.erase(cgroup); }
  void forget(CgroupId container) { containers_.erase(container); }

  // For another ledger of this kind, which goes on from there before it takes anything.
  ContainerSums container_sums() const {
    ContainerSums all;
    for (const auto& [id, container] : containers_)
      all[id].assign(container.sum.begin(), container.sum.end());
    return all;
  }
  void go_on_from(const ContainerSums& former) {
    for (const auto& [id, words] : former) {
      CHECK_INVARIANT(words.size() == size);
      std::ranges::copy(words, containers_[id].sum.begin());
    }
  }

  // Whether anything was ever told of it.
  bool has(CgroupId container) const { return containers_.contains(container); }
  // Zeros where nothing was counted.
  Counts of(CgroupId container) const {
    const auto found = containers_.find(container);
    return found == containers_.end() ? Counts{} : found->second.sum;
  }
  // `each`: (Sample&, const Container&) of all samples, which ascend by id. `complete`: of whom
  // nothing was told has zeros; else that one is passed over, for nothing is known of it.
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
  std::map<std::uint64_t, Counts> taken_;  // by cgroup: what containers have of it
  std::map<CgroupId, Container> containers_;
};

}  // namespace cgphase
