#include "collectors/ebpf/cgroup_paths.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace cgphase {
namespace {

// Where an open descriptor leads.
std::string path_of(int fd) {
  std::array<char, 4096> path;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
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

CgroupPath CgroupPaths::look(std::uint64_t inode) const {
  const Fd directory(open(inode));
  if (!directory.valid() || root_path_.empty()) return {};
  const std::string path = path_of(directory.get());
  if (path == root_path_) return "/";
  return path.starts_with(root_path_ + "/") ? path.substr(root_path_.size()) : CgroupPath();
}

bool CgroupPaths::gone(std::uint64_t inode) const {
  const Fd directory(open(inode));
  return !directory.valid() && errno == ESTALE;
}

std::size_t CgroupPaths::count(std::size_t most) const {
  std::size_t found = 1;
  std::error_code error;
  namespace fs = std::filesystem;
  for (fs::recursive_directory_iterator entry(root_path_, error), end;
       !error && entry != end && found < most; entry.increment(error))
    if (entry->is_directory(error)) ++found;
  return found;
}

}  // namespace cgphase
