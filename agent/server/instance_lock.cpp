#include "agent/server/instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

constexpr const char* kLockName = "lock";
constexpr std::size_t kPidTextBytes = 64;

Result<Fd> open_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
    if (errno == EACCES || errno == EPERM || errno == EROFS)
      return failure(ErrorKind::denied, "uid " + std::to_string(::geteuid()) +
                                            " may not make the runtime directory " + path +
                                            "; run as root, or name another with --runtime-dir");
    return errno_failure("make the runtime directory " + path, errno);
  }
  Result<Fd> directory = open_path(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return directory;
  struct stat status {};
  if (::fstat(directory->get(), &status) != 0) return errno_failure("stat " + path, errno);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return failure(ErrorKind::denied,
                   "runtime directory " + path +
                       " belongs to or can be written by others; give it to this user with mode "
                       "0750, or name another with --runtime-dir");
  return directory;
}

std::unexpected<Error> second_daemon(const std::string& path, int directory_fd) {
  const Result<std::string> text = read_file_at(directory_fd, kLockName, kPidTextBytes);
  const auto pid = text ? parse_u64(trim(*text)) : std::nullopt;
  return failure(ErrorKind::invalid, "another cgphased" +
                                         (pid ? " (pid " + std::to_string(*pid) + ")" : "") +
                                         " runs in " + path +
                                         "; stop it first, or name another --runtime-dir");
}

}  // namespace

Result<InstanceLock> InstanceLock::acquire(const std::string& directory) {
  Result<Fd> held = open_directory(directory);
  if (!held) return std::unexpected(held.error());
  Result<Fd> file = open_at(held->get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!file) return std::unexpected(file.error());
  if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return second_daemon(directory, held->get());
    return errno_failure("lock " + directory + "/" + kLockName, errno);
  }
  // The pid is for the message above only; nothing is decided by it, and a full disk may keep it.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file->get(), 0) == 0) (void)write_all(file->get(), pid);
  return InstanceLock(directory, *std::move(held), *std::move(file));
}

}  // namespace cgphase
