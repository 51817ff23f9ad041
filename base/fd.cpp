#include "base/fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace cgphase {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

Fd::~Fd() { reset(); }

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Fd> open_path(const std::string& path, int flags, unsigned mode) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return errno_failure(path, errno);
  return Fd(fd);
}

Result<Fd> open_at(int directory_fd, const char* name, int flags, unsigned mode) {
  const int fd = ::openat(directory_fd, name, flags | O_CLOEXEC, mode);
  if (fd < 0) return errno_failure(name, errno);
  return Fd(fd);
}

bool is_among_last(const Fd& fd, unsigned count) {
  rlimit limit{};
  if (!fd.valid() || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const auto number = static_cast<rlim_t>(fd.get());
  return number < limit.rlim_cur && limit.rlim_cur - number <= count;
}

Result<std::string_view> pread_text(int fd, std::span<char> buffer) {
  ssize_t count;
  do {
    count = ::pread(fd, buffer.data(), buffer.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return errno_failure("read", errno);
  if (static_cast<std::size_t>(count) == buffer.size())
    return failure(ErrorKind::invalid, "read: the file does not fit the buffer");
  return std::string_view(buffer.data(), static_cast<std::size_t>(count));
}

Status pwrite_text(int fd, std::string_view text) {
  const ssize_t count = ::pwrite(fd, text.data(), text.size(), 0);
  if (count < 0) return errno_failure("write", errno);
  if (static_cast<std::size_t>(count) != text.size())
    return failure(ErrorKind::io, "write: the kernel accepted only part of the value");
  return {};
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_failure("write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace cgphase
