#include "collectors/ebpf/hot_cgroups.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <bit>

#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/per_cpu_map.h"

namespace cgphase {

std::uint32_t hot_places(std::uint32_t room) {
  return std::clamp<std::uint32_t>(std::bit_ceil(room / 2), 1, HOT_CGROUPS);
}

HotCgroups::HotCgroups(int fd, std::size_t record_bytes, std::span<__u64> owners)
    : fd_(fd), owners_(owners), records_(record_bytes * possible_processors()) {}

bool HotCgroups::has(std::uint64_t cgroup) const {
  return !owners_.empty() && cgroup != 0 && owners_[place_of(cgroup)] == cgroup;
}

void HotCgroups::give(std::uint64_t cgroup) {
  if (owners_.empty() || cgroup == 0) return;
  __u64& owner = owners_[place_of(cgroup)];
  if (owner == 0) __atomic_store_n(&owner, cgroup, __ATOMIC_RELAXED);
}

void HotCgroups::take_back(std::uint64_t cgroup) {
  if (!has(cgroup)) return;
  const std::uint32_t place = place_of(cgroup);
  __atomic_store_n(&owners_[place], 0, __ATOMIC_RELAXED);
  std::ranges::fill(records_, std::byte{});
  (void)bpf_map_update_elem(fd_, &place, records_.data(), BPF_ANY);
}

std::span<const std::byte> HotCgroups::read(std::uint64_t cgroup) {
  if (!has(cgroup)) return {};
  const std::uint32_t place = place_of(cgroup);
  if (bpf_map_lookup_elem(fd_, &place, records_.data()) != 0) return {};
  return records_;
}

}  // namespace cgphase
