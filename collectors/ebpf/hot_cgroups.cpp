#include "collectors/ebpf/hot_cgroups.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/per_cpu_map.h"

namespace cgphase {
namespace {

constexpr std::uint32_t kLeastPlaces = 2;  // a cgroup may have either of two places
// If one map would need more memory than this, because of many processors, there are only
// kFewPlaces places.
constexpr std::size_t kMostHotBytes = 2 << 20;
constexpr std::uint32_t kFewPlaces = 256;

constexpr unsigned kInodeBits = 64;

}  // namespace

std::uint32_t hot_places(std::uint32_t room, std::size_t record_bytes) {
  const auto fit = static_cast<std::uint32_t>(
      std::bit_floor(kMostHotBytes / (record_bytes * possible_processors())));
  const std::uint32_t most = std::clamp<std::uint32_t>(fit, kFewPlaces, HOT_CGROUPS);
  return std::clamp(std::bit_ceil(room), kLeastPlaces, most);
}

std::uint32_t hot_shift(std::uint32_t places) {
  return kInodeBits - static_cast<std::uint32_t>(std::countr_zero(places));
}

void HotCgroups::Unmap::operator()(std::byte* records) const { ::munmap(records, bytes); }

HotCgroups::HotCgroups(int fd, int owners_fd, std::size_t record_bytes, std::uint32_t places)
    : fd_(fd), owners_fd_(owners_fd), record_bytes_(record_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = record_bytes * places * possible_processors();
  const std::size_t mapped = (bytes + page - 1) / page * page;
  void* map = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return;
  records_ = {static_cast<std::byte*>(map), Unmap{mapped}};
  owners_.resize(places);
}

std::uint32_t HotCgroups::first_place(std::uint64_t cgroup) const {
  return static_cast<std::uint32_t>(cgroup * HOT_SPREAD >>
                                    hot_shift(static_cast<std::uint32_t>(owners_.size())));
}

void HotCgroups::set_owner(std::uint32_t place, std::uint64_t cgroup) {
  owners_[place] = cgroup;
  (void)bpf_map_update_elem(owners_fd_, &place, &cgroup, BPF_ANY);
}

std::optional<std::uint32_t> HotCgroups::place_of(std::uint64_t cgroup) const {
  if (owners_.empty() || cgroup == 0) return std::nullopt;
  const std::uint32_t first = first_place(cgroup);
  for (const std::uint32_t place : {first, first ^ 1})
    if (owners_[place] == cgroup) return place;
  return std::nullopt;
}

std::optional<std::uint32_t> HotCgroups::assign(std::uint64_t cgroup) {
  if (owners_.empty() || cgroup == 0) return std::nullopt;
  if (const auto place = place_of(cgroup)) return place;
  const std::uint32_t first = first_place(cgroup);
  for (const std::uint32_t place : {first, first ^ 1}) {
    if (owners_[place] != 0) continue;
    set_owner(place, cgroup);
    return place;
  }
  return std::nullopt;
}

void HotCgroups::release(std::uint64_t cgroup) {
  const auto place = place_of(cgroup);
  if (!place) return;
  set_owner(*place, 0);
  for (std::size_t processor = 0; processor < possible_processors(); ++processor)
    std::memset(const_cast<std::byte*>(record(*place, processor)), 0, record_bytes_);
}

}  // namespace cgphase
