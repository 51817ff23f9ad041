// That a program starts in a container, told while it does.
#pragma once

#include <cstdint>

namespace cgphase {

// Used by one thread.
class ProgramStarts {
 public:
  virtual ~ProgramStarts() = default;
  // Readable when a start is told.
  virtual int fd() const = 0;
  // Calls `tell` with the inode of each container in which one started. Allocates nothing.
  virtual void take(void (*tell)(void* listener, std::uint64_t container), void* listener) = 0;
};

}  // namespace cgphase
