// Reports that a program starts in a container, while it starts.
#pragma once

#include <cstdint>

namespace cgphase {

// Implemented by the BPF programs. Used by one thread.
class ProgramStarts {
 public:
  virtual ~ProgramStarts() = default;
  // Becomes readable when a start is reported.
  virtual int fd() const = 0;
  // Calls `tell` with the inode of each container's cgroup in which a program started. Allocates
  // nothing.
  virtual void take(void (*tell)(void* listener, std::uint64_t container), void* listener) = 0;
};

}  // namespace cgphase
