// Places of their own for cgroups in a program's counters (hot_cgroups.bpf.h): where one has a
// place, an event takes no look into a hash, which is most of what it costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cgphase {

// The places that a map with room for so many cgroups is given.
std::uint32_t hot_places(std::uint32_t room);

// A place is given to the first that asks and has its inode modulo their number, and is its own
// until it is taken back: so no event is ever on its way to a place that changes hands while its
// owner lives. What was counted before stays in the hash. Owned and used by one thread; map and
// owners belong to the programs.
class HotCgroups {
 public:
  HotCgroups() = default;
  // `fd`: of the map of places, a power of two. `owners_fd`: of the map that tells the programs
  // whose they are. `record_bytes`: of one processor.
  HotCgroups(int fd, int owners_fd, std::size_t record_bytes, std::uint32_t places);

  bool has(std::uint64_t cgroup) const;
  void give(std::uint64_t cgroup);
  // The cgroup is gone. A place that cannot be emptied is nobody's any more.
  void take_back(std::uint64_t cgroup);

  // One record of each possible processor, as they are now, until the next call; empty where it has
  // no place. Nothing where it has one that could not be read (ENOMEM).
  std::optional<std::span<const std::byte>> read(std::uint64_t cgroup);

  int fd() const { return fd_; }

 private:
  std::uint32_t place_of(std::uint64_t cgroup) const {
    return static_cast<std::uint32_t>(cgroup & (owners_.size() - 1));
  }

  void set_owner(std::uint32_t place, std::uint64_t cgroup);

  int fd_ = -1, owners_fd_ = -1;
  std::vector<std::uint64_t> owners_;  // 0: nobody
  std::vector<std::byte> records_;
};

}  // namespace cgphase
