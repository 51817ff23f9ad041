#include "collectors/ebpf/cgroup_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include "collectors/cgroup_tree.h"
#include "collectors/process_cgroup.h"

namespace cgphase {
namespace {

// The path of an open descriptor.
std::string path_of(int fd) {
  std::array<char, 4096> path;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

// Counts cgroups below a directory, `levels` deep. One that cannot be opened is gone and has none.
std::size_t count_below(int parent_fd, const char* name, std::size_t levels, std::size_t most) {
  Fd opened(::openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  // cgroupfs counts child directories in the link count, so that most cgroups need no listing.
  if (!opened.valid() || ::fstat(opened.get(), &status) != 0 || status.st_nlink == 2) return 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(opened.get()), ::closedir);
  if (!directory) return 0;
  const int fd = opened.release();
  std::size_t found = 0;
  while (found < most) {
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view child = entry->d_name;
    if (entry->d_type != DT_DIR || child == "." || child == "..") continue;
    ++found;
    if (levels > 1) found += count_below(fd, entry->d_name, levels - 1, most - found);
  }
  return found;
}

}  // namespace

CgroupPaths::CgroupPaths(const std::string& root) {
  Result<Fd> opened = open_path(root, O_RDONLY | O_DIRECTORY);
  if (!opened) return;
  root_ = std::move(*opened);
  root_path_ = path_of(root_.get());
}

int CgroupPaths::open(std::uint64_t inode) const {
  constexpr int kFileidKernfs = 0xfe;
  struct {
    unsigned bytes = sizeof(inode);
    int type = kFileidKernfs;
    std::uint64_t inode;
  } handle{.inode = inode};
  static_assert(sizeof(handle) == sizeof(file_handle) + sizeof(inode));
  return ::open_by_handle_at(root_.get(), reinterpret_cast<file_handle*>(&handle),
                             O_PATH | O_CLOEXEC);
}

CgroupPath CgroupPaths::lookup(std::uint64_t inode) const {
  const Fd directory(open(inode));
  if (!directory.valid() || root_path_.empty()) return {};
  return path_below(path_of(directory.get()), root_path_);
}

bool CgroupPaths::gone(std::uint64_t inode) const {
  if (inode == 0) return false;
  const Fd directory(open(inode));
  return !directory.valid() && errno == ESTALE;
}

std::size_t CgroupPaths::count(std::size_t most) const {
  return 1 + count_below(root_.get(), ".", kMaxCgroupDepth, most - 1);
}

}  // namespace cgphase
