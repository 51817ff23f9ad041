// Assigns places of their own to cgroups in a program's counters (hot_cgroups.bpf.h). With a place,
// an event needs no hash lookup, which is most of its cost, and a reading needs no system call.
#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectors/ebpf/per_cpu_map.h"

namespace cgphase {

// The number of places per processor for a program whose hash has room for `room` cgroups. It is a
// power of two, large enough that a cgroup rarely finds both of its places taken.
std::uint32_t hot_places(std::uint32_t room, std::size_t record_bytes);
// The shift that the program uses to find them.
std::uint32_t hot_shift(std::uint32_t places);

// A place is assigned to the first cgroup that asks and may have it, until it is released. So no
// event is in progress for a place that changes its owner while that owner exists. Earlier counts
// stay in the hash. Owned and used by one thread; the maps belong to the programs.
class HotCgroups {
 public:
  HotCgroups() = default;
  // `fd` is the map of places, which is mapped into memory; if that fails, there are no places.
  // `owners_fd` is the map that tells the programs the owners. `record_bytes` is the size per
  // processor, a multiple of 8. `places` is the number per processor.
  HotCgroups(int fd, int owners_fd, std::size_t record_bytes, std::uint32_t places);

  std::optional<std::uint32_t> place_of(std::uint64_t cgroup) const;
  // Returns its place, or assigns one; absent if others have both of its places.
  std::optional<std::uint32_t> assign(std::uint64_t cgroup);
  // Releases the place of a removed cgroup and clears it.
  void release(std::uint64_t cgroup);

  // The record of a place on one of the possible processors. Programs write it meanwhile.
  const std::byte* record(std::uint32_t place, std::size_t processor) const {
    return records_.get() + (processor * owners_.size() + place) * record_bytes_;
  }

  int fd() const { return fd_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* records) const;
  };
  std::uint32_t first_place(std::uint64_t cgroup) const;
  void set_owner(std::uint32_t place, std::uint64_t cgroup);

  int fd_ = -1, owners_fd_ = -1;
  std::size_t record_bytes_ = 0;
  std::vector<std::uint64_t> owners_;  // 0: none
  std::unique_ptr<std::byte, Unmap> records_{nullptr, Unmap{0}};
};

// For a skeleton whose program includes hot_cgroups.bpf.h: call size_places() before loading, and
// places_of() after it.
template <class Skeleton>
void size_places(Skeleton& skeleton, std::uint32_t room, std::size_t record_bytes) {
  const std::uint32_t places = hot_places(room, record_bytes);
  (void)bpf_map__set_max_entries(skeleton.maps.hot,
                                 static_cast<std::uint32_t>(places * possible_processors()));
  (void)bpf_map__set_max_entries(skeleton.maps.hot_owners, places);
  skeleton.rodata->hot_places = places;
  skeleton.rodata->hot_shift = hot_shift(places);
}
template <class Skeleton>
HotCgroups places_of(const Skeleton& skeleton, std::uint32_t room, std::size_t record_bytes) {
  return HotCgroups(bpf_map__fd(skeleton.maps.hot), bpf_map__fd(skeleton.maps.hot_owners),
                    record_bytes, hot_places(room, record_bytes));
}

}  // namespace cgphase
