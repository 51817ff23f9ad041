// A map of the kernel with one record for each cgroup and processor, read whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace cgphase {

// Also those that are not there, but could come.
std::size_t possible_processors();

// Memory that the kernel took for a map, as its own account says. 0 where it does not.
std::uint64_t map_memory_bytes(int fd);

// Owned and used by one thread; the map itself belongs to a program.
class PerCpuMap {
 public:
  PerCpuMap() = default;
  // Keys are __u64. `record_bytes`: of one processor's record, a multiple of 8.
  PerCpuMap(int fd, std::size_t record_bytes, std::size_t max_entries);

  // `records`: one of each possible processor, one after another. A cgroup that comes or goes
  // meanwhile may be missing. Many at a time, for a call of the kernel costs more than a record.
  using Take = std::function<void(std::uint64_t cgroup, std::span<const std::byte> records)>;
  Status read(const Take& take);
  // The same of one cgroup, if it is there.
  void look(std::uint64_t cgroup, const Take& take);

  void remove(std::uint64_t cgroup);
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::size_t max_entries_ = 0;
  std::size_t entry_bytes_ = 0;  // of all processors
  std::vector<std::uint64_t> keys_;
  std::vector<std::byte> records_;
};

}  // namespace cgphase
