#include "collectors/ebpf/cgroup_paths.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/file.h"
#include "cgroupfs/kernel_text.h"
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
  constexpr std::string_view kBelow[] = {"nr_descendants"};
  Counter below;
  if (const auto text = read_file_at(root_.get(), "cgroup.stat", kKernelTextBytes))
    scan_flat_keyed(*text, kBelow, {&below, 1});
  return 1 + std::min<std::size_t>(below.value_or(0), most - 1);
}

}  // namespace cgphase
