#include "collectors/ebpf/hot_cgroups.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <bit>

#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/per_cpu_map.h"

namespace cgphase {
namespace {

constexpr std::uint64_t kNobody = ~std::uint64_t{0};  // no cgroup has this inode

}  // namespace

std::uint32_t hot_places(std::uint32_t room) {
  return std::clamp<std::uint32_t>(std::bit_ceil(room / 2), 1, HOT_CGROUPS);
}

HotCgroups::HotCgroups(int fd, int owners_fd, std::size_t record_bytes, std::uint32_t places)
    : fd_(fd),
      owners_fd_(owners_fd),
      owners_(places),
      records_(record_bytes * possible_processors()) {}

void HotCgroups::set_owner(std::uint32_t place, std::uint64_t cgroup) {
  owners_[place] = cgroup;
  (void)bpf_map_update_elem(owners_fd_, &place, &cgroup, BPF_ANY);
}

bool HotCgroups::has(std::uint64_t cgroup) const {
  return !owners_.empty() && cgroup != 0 && owners_[place_of(cgroup)] == cgroup;
}

void HotCgroups::give(std::uint64_t cgroup) {
  if (owners_.empty() || cgroup == 0) return;
  const std::uint32_t place = place_of(cgroup);
  if (owners_[place] == 0) set_owner(place, cgroup);
}

void HotCgroups::take_back(std::uint64_t cgroup) {
  if (!has(cgroup)) return;
  const std::uint32_t place = place_of(cgroup);
  set_owner(place, 0);
  std::ranges::fill(records_, std::byte{});
  if (bpf_map_update_elem(fd_, &place, records_.data(), BPF_ANY) != 0) owners_[place] = kNobody;
}

std::optional<std::span<const std::byte>> HotCgroups::read(std::uint64_t cgroup) {
  if (!has(cgroup)) return std::span<const std::byte>();
  const std::uint32_t place = place_of(cgroup);
  if (bpf_map_lookup_elem(fd_, &place, records_.data()) != 0)
    return std::nullopt;
  return records_;
}

}  // namespace cgphase
