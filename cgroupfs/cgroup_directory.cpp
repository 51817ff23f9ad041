#include "cgroupfs/cgroup_directory.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace cgphase {
namespace {

Hierarchy hierarchy_of(const struct statfs& filesystem) {
  if (filesystem.f_type == CGROUP2_SUPER_MAGIC) return Hierarchy::v2;
  return filesystem.f_type == CGROUP_SUPER_MAGIC ? Hierarchy::v1 : Hierarchy::none;
}

}  // namespace

Hierarchy hierarchy_of(int directory_fd) {
  struct statfs filesystem;
  return ::fstatfs(directory_fd, &filesystem) == 0 ? hierarchy_of(filesystem) : Hierarchy::none;
}

Hierarchy hierarchy_of(const std::string& path) {
  struct statfs filesystem;
  return ::statfs(path.c_str(), &filesystem) == 0 ? hierarchy_of(filesystem) : Hierarchy::none;
}

Result<CgroupId> identify(int directory_fd) {
  struct stat status;
  if (::fstat(directory_fd, &status) != 0) return errno_failure("cgroup directory", errno);
  return CgroupId{status.st_dev, status.st_ino};
}

Result<CgroupId> identify(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return errno_failure(path, errno);
  return CgroupId{status.st_dev, status.st_ino};
}

bool directory_alive(int directory_fd) {
  struct stat status;
  if (::fstat(directory_fd, &status) == 0 && status.st_nlink == 0) return false;
  if (!is_cgroup2(directory_fd)) return true;
  return ::faccessat(directory_fd, "cgroup.controllers", F_OK, 0) == 0 ||
         (errno != ENOENT && errno != ENODEV);
}

}  // namespace cgphase
