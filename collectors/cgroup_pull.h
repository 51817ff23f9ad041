// Many cgroups read at once, without a file: the door to the program that walks over them
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

// Which raw numbers behind memory.stat a walk brings (collectors/memory_lines.h).
struct MemoryChoice {
  std::span<const std::uint32_t> lines;  // at most PULL_MEMORY_LINES
  std::span<const std::uint32_t> same;   // for each of PULL_RAW places one that is expected to be
                                         // the same, or none
};

// Owned and used by one thread.
class CgroupPull {
 public:
  virtual ~CgroupPull() = default;

  virtual const char* name() const = 0;  // "BPF iterator"

  // A cgroup's place in the records, by its inode; nothing when all are taken.
  virtual std::optional<std::uint32_t> add(std::uint64_t inode) = 0;
  virtual void remove(std::uint64_t inode, std::uint32_t place) = 0;
  virtual void choose(const MemoryChoice& choice) = 0;

  // One walk over all cgroups. The statistics were flushed before, by who calls. `raw_of`: whose
  // raw numbers raw() has afterwards, 0 for none. False: nothing was told.
  virtual bool walk(std::uint64_t raw_of) = 0;
  // Whether the kernel flushes the statistics of all controllers when one of a cgroup's files with
  // statistics is read.
  virtual bool one_flush() const { return false; }
  // What the last walk told of that place; null when it told nothing.
  virtual const pull_record* record(std::uint32_t place) const = 0;
  // PULL_RAW numbers, or none.
  virtual std::span<const std::uint64_t> raw() const = 0;
};

// Makes one with room for so many cgroups.
using OpenCgroupPull = std::function<Result<std::unique_ptr<CgroupPull>>(std::size_t room)>;

}  // namespace cgphase
