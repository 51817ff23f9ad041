// Bytes as a file that a reader can open by its path. The file is in memory and has no name.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/fd.h"

namespace cgphase {

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) { CHECK_INVARIANT(fd_.valid()); }

  // Replaces the content.
  void write(const std::uint8_t* bytes, std::size_t size) const {
    CHECK_INVARIANT(::ftruncate(fd_.get(), 0) == 0);
    CHECK_INVARIANT(::pwrite(fd_.get(), bytes, size, 0) == static_cast<ssize_t>(size));
  }
  void write(const std::string& text) const {
    write(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  Fd fd_;
};

}  // namespace cgphase
