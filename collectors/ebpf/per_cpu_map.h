// Reads a whole kernel map with one record per cgroup and processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace cgphase {

// The number of processors, including those that may be added later.
std::size_t possible_processors();

// Memory of a map by the kernel's own account; 0 if it is unknown.
std::uint64_t map_memory_bytes(int fd);

// Owned and used by one thread; the map itself belongs to a program.
class PerCpuMap {
 public:
  PerCpuMap() = default;
  // Keys are __u64. `record_bytes` is the size of one processor's record, a multiple of 8.
  PerCpuMap(int fd, std::size_t record_bytes, std::size_t max_entries);

  // `records` has one record per possible processor. A cgroup that comes or goes meanwhile may be
  // missing. The kernel is asked for many cgroups at a time, because a system call costs more than
  // a record.
  using Take = std::function<void(std::uint64_t cgroup, std::span<const std::byte> records)>;
  Status read(const Take& take);
  // The same for one cgroup, if it exists.
  void lookup(std::uint64_t cgroup, const Take& take);

  void remove(std::uint64_t cgroup);
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::size_t max_entries_ = 0;
  std::size_t entry_bytes_ = 0;  // bytes of all processors
  std::vector<std::uint64_t> keys_;
  std::vector<std::byte> records_;
};

}  // namespace cgphase
