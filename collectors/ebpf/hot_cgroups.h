// Places of their own for cgroups in a program's counters (hot_cgroups.bpf.h): where one has a
// place, an event takes no look into a hash, which is most of what it costs, and a reading no call
// of the kernel.
#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectors/ebpf/per_cpu_map.h"

namespace cgphase {

// The places that a program is given for each processor, whose hash has room for so many cgroups: a
// power of two, so many that hardly a cgroup finds both of its places taken.
std::uint32_t hot_places(std::uint32_t room, std::size_t record_bytes);
// What a program must know of them.
std::uint32_t hot_shift(std::uint32_t places);

// A place is given to the first that asks and may have it, and is its own until it is taken back:
// so no event is ever on its way to a place that changes hands while its owner lives. What was
// counted before stays in the hash. Owned and used by one thread; map and owners belong to the
// programs.
class HotCgroups {
 public:
  HotCgroups() = default;
  // `fd`: of the map of places, which is mapped; where it cannot be there are none. `owners_fd`: of
  // the map that tells the programs whose they are. `record_bytes`: of one processor, a multiple of
  // 8. `places`: of one processor.
  HotCgroups(int fd, int owners_fd, std::size_t record_bytes, std::uint32_t places);

  std::optional<std::uint32_t> place_of(std::uint64_t cgroup) const;
  // The place that it has, or is given; nothing where others have both that it may have.
  std::optional<std::uint32_t> give(std::uint64_t cgroup);
  // The cgroup is gone. Its place is empty, and nobody's.
  void take_back(std::uint64_t cgroup);

  // The record of a place on one of the possible processors, which programs write meanwhile.
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
  std::vector<std::uint64_t> owners_;  // 0: nobody
  std::unique_ptr<std::byte, Unmap> records_{nullptr, Unmap{0}};
};

// Of a skeleton whose program includes hot_cgroups.bpf.h: before it is loaded, and after that.
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
