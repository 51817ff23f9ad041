#include "collectors/stat_flush.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <set>
#include <string>

#include "collectors/cgroup_files.h"

namespace cgphase {

void StatFlush::open(int root_fd, std::string_view cgroup, const char* file) {
  const std::string name = "." + std::string(cgroup) + "/" + file;
  if (Result<Fd> fd = open_at(root_fd, name.c_str(), O_RDONLY | O_NOFOLLOW))
    files_.push_back(std::move(*fd));
}

void StatFlush::open_parents(int root_fd, std::span<const std::string_view> paths) {
  std::map<std::string_view, std::size_t> parents;
  for (const std::string_view path : paths) ++parents[path.substr(0, path.rfind('/'))];
  for (const auto& [parent, count] : parents)
    if (count >= kFlushSiblings) open(root_fd, parent, kernel_file_name(KernelFile::cpu_stat));
}

void StatFlush::open_tops(int root_fd, std::span<const std::string_view> paths, bool one_flush) {
  std::set<std::string_view> tops;
  for (const std::string_view path : paths) tops.insert(path.substr(0, path.find('/', 1)));
  for (const std::string_view top : tops) {
    open(root_fd, top, kernel_file_name(KernelFile::cpu_stat));
    if (one_flush) continue;
    open(root_fd, top, kernel_file_name(KernelFile::io_stat));
    open(root_fd, top, kernel_file_name(KernelFile::memory_stat));
  }
}

void StatFlush::read(std::span<char> buffer) const {
  for (const Fd& fd : files_)
    [[maybe_unused]] const ssize_t count = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
}

}  // namespace cgphase
