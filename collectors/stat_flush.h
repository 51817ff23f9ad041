// Makes the kernel bring the statistics of many cgroups up to date at once: reading one file of a
// parent does that for all cgroups below it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace cgphase {

// Owned and used by one thread.
class StatFlush {
 public:
  void clear() { files_.clear(); }
  // For reading files: it pays from kFlushSiblings containers of one parent on, and halves the cost
  // of their own reads at a thousand. `paths` are those of the containers.
  void open_parents(int root_fd, std::span<const std::string_view> paths);
  // For a walk by BPF, which reads all of them: at the cgroups just below the root. `one_flush`:
  // one file is enough for all statistics.
  void open_tops(int root_fd, std::span<const std::string_view> paths, bool one_flush);
  // Reads the files. Neither text nor result is used.
  void read(std::span<char> buffer) const;

 private:
  void open(int root_fd, std::string_view cgroup, const char* file);

  std::vector<Fd> files_;
};

inline constexpr std::size_t kFlushSiblings = 16;

}  // namespace cgphase
