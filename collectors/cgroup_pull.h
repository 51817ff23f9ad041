// The interface to the BPF program that walks over all cgroups and reads them without files
// (collectors/ebpf/kernel_pull.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "collectors/pull_record.h"

namespace cgphase {

// The raw numbers of memory.stat that a walk copies (collectors/memory_lines.h).
struct MemoryChoice {
  std::span<const std::uint32_t> lines;  // at most PULL_MEMORY_LINES
  std::span<const std::uint32_t> same;   // for each of PULL_RAW places, one that is expected to be
                                         // the same, or none
};

// Owned and used by one thread.
class CgroupPull {
 public:
  virtual ~CgroupPull() = default;

  virtual const char* name() const = 0;  // "BPF iterator"

  // Returns the cgroup's place in the records, by its inode; absent if all places are taken.
  virtual std::optional<std::uint32_t> add(std::uint64_t inode) = 0;
  virtual void remove(std::uint64_t inode, std::uint32_t place) = 0;
  virtual void choose(const MemoryChoice& choice) = 0;

  // Walks once over all cgroups. The caller flushed the statistics before. raw() then has the raw
  // numbers of the cgroup `raw_of`; 0 for none. False if the walk failed.
  virtual bool walk(std::uint64_t raw_of) = 0;
  // True if the kernel flushes the statistics of all controllers when one file with statistics is
  // read.
  virtual bool one_flush() const { return false; }
  // The record of that place from the last walk; null if it has none.
  virtual const pull_record* record(std::uint32_t place) const = 0;
  // PULL_RAW numbers, or none.
  virtual std::span<const std::uint64_t> raw() const = 0;
};

// Creates a CgroupPull with room for `room` cgroups.
using OpenCgroupPull = std::function<Result<std::unique_ptr<CgroupPull>>(std::size_t room)>;

}  // namespace cgphase
