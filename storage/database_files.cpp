#include "storage/database_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.h"

namespace cgphase {
namespace {

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes / kMiB) + "." + std::to_string(bytes % kMiB * 10 / kMiB) + " MiB";
}

}  // namespace

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::uint64_t file_bytes(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::string disk_problem(const std::string& path, Bytes min_free) {
  struct statvfs disk {};
  if (path == ":memory:" || ::statvfs(path.c_str(), &disk) != 0) return {};
  if ((disk.f_flag & ST_RDONLY) != 0)
    return "the file system of " + escape_name(path) + " is read-only";
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free >= min_free.value) return {};
  return "the disk of " + escape_name(path) + " has " + mebibytes(free) + " free, less than " +
         mebibytes(min_free.value);
}

Result<std::string> set_aside(const std::string& path, const std::string& reason) {
  for (int number = 1; number <= kMaxSetAside; ++number) {
    const std::string aside = path + "." + reason + "-" + std::to_string(number);
    if (file_exists(aside) || file_exists(aside + "-wal")) continue;
    if (::rename(path.c_str(), aside.c_str()) != 0)
      return errno_failure("moving " + escape_name(path) + " aside", errno);
    if (::rename((path + "-wal").c_str(), (aside + "-wal").c_str()) != 0 && errno != ENOENT)
      return errno_failure("moving " + escape_name(path) + "-wal aside", errno);
    return aside;
  }
  return failure(ErrorKind::io, escape_name(path) + ": " + reason + ", and there are " +
                                    std::to_string(kMaxSetAside) +
                                    " such files already: check the disk, then delete them");
}

std::string newest_set_aside(const std::string& path, const std::string& reason) {
  std::string newest;
  for (int number = 1; number <= kMaxSetAside; ++number)
    if (const std::string aside = path + "." + reason + "-" + std::to_string(number);
        file_exists(aside))
      newest = aside;
  return newest;
}

Result<Fd> lock_for_reading(const std::string& path) {
  Result<Fd> file = open_path(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return file;
  // The bytes of a database file that every SQLite writer locks.
  struct flock range {};
  range.l_type = F_RDLCK;
  range.l_whence = SEEK_SET;
  range.l_start = 0x40000002;
  range.l_len = 510;
  if (::fcntl(file->get(), F_OFD_SETLK, &range) == 0) return file;
  if (errno != EAGAIN && errno != EACCES)
    return errno_failure("locking " + escape_name(path), errno);
  return failure(ErrorKind::invalid, escape_name(path) +
                                         ": in use by a running cgphased; leave out --state-dir to "
                                         "ask that one, or stop it first");
}

}  // namespace cgphase
