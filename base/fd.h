// A file descriptor that closes itself, and the few system calls that are made on one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cgphase {

// Owns one descriptor; -1 is empty. It is movable and closes on destruction. cgphase opens every
// descriptor with O_CLOEXEC.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// open(2) and openat(2) with O_CLOEXEC added. `path` and `name` appear in the error.
Result<Fd> open_path(const std::string& path, int flags, unsigned mode = 0);
Result<Fd> open_at(int directory_fd, const char* name, int flags, unsigned mode = 0);

// True if `fd` is one of the last `count` numbers below this process's limit of descriptors. The
// kernel hands out the lowest free number, so few descriptors are left then.
bool is_among_last(const Fd& fd, unsigned count);

// Reads a kernel text file with one pread(2) from offset 0. Returns the bytes read as a view into
// `buffer`. A file that fills the whole buffer is an error (invalid), not a truncated answer.
// ENODEV after rmdir of a cgroup is `gone`.
Result<std::string_view> pread_text(int fd, std::span<char> buffer);

// Writes all of `text` to a kernel text file with one pwrite(2) at offset 0. A short write is io.
Status pwrite_text(int fd, std::string_view text);

// Repeats write(2) until all bytes are written.
Status write_all(int fd, std::string_view bytes);

}  // namespace cgphase
