// A file descriptor that closes itself, and the few calls made on one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cgphase {

// Owns one descriptor; -1 is empty. Movable, closes on destruction. Every descriptor that cgphase
// opens is O_CLOEXEC.
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

// open(2) and openat(2) with O_CLOEXEC added; `path` appears in the error.
Result<Fd> open_path(const std::string& path, int flags, unsigned mode = 0);
Result<Fd> open_at(int directory_fd, const char* name, int flags, unsigned mode = 0);

// Whether `fd` is among the last `count` that this process may have: the kernel gives out the
// lowest number that is free.
bool is_among_last(const Fd& fd, unsigned count);

// One pread(2) from offset 0 into `buffer`, as kernel text files want it: the bytes read, as a view
// into `buffer`. A file that fills the buffer to the last byte is an error (invalid), not a
// truncated answer. ENODEV after rmdir of a cgroup is `gone`.
Result<std::string_view> pread_text(int fd, std::span<char> buffer);

// One pwrite(2) of all of `text` at offset 0, as kernel text files want it. A short write is io.
Status pwrite_text(int fd, std::string_view text);

// write(2) until all of it is written.
Status write_all(int fd, std::string_view bytes);

}  // namespace cgphase
