#include "collectors/cgroup_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <memory>

#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "collectors/cgroup_tree.h"

namespace cgphase {
namespace {

constexpr std::size_t kProcsBytes = 64 * 1024;
constexpr std::size_t kCommandBytes = 64;

class Visit {
 public:
  explicit Visit(const std::function<bool(std::string_view)>& look) : look_(look) {}

  void enter(int cgroup_fd, std::size_t depth) {
    if (cgroups_++ == kMostVisitedCgroups || depth > kMaxCgroupDepth) {
      complete_ = false;
      return;
    }
    // In a threaded cgroup the file cannot be read. The cgroup above lists its processes.
    if (const auto pids = read_file_at(cgroup_fd, "cgroup.procs", kProcsBytes)) {
      std::string_view rest = *pids, pid;
      while (wanted_ && next_line(rest, pid)) wanted_ = look_(pid);
    } else if (pids.error().kind == ErrorKind::denied ||
               pids.error().kind == ErrorKind::invalid || pids.error().kind == ErrorKind::io) {
      complete_ = false;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(list(cgroup_fd), ::closedir);
    if (!listing) return missed(errno);
    while (const dirent* entry = wanted_ ? ::readdir(listing.get()) : nullptr) {
      const std::string_view name = entry->d_name;
      if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
      const Fd child(::openat(cgroup_fd, entry->d_name, kFlags));
      if (child.valid()) enter(child.get(), depth + 1);
      else missed(errno);
      if (cgroups_ > kMostVisitedCgroups) return;
    }
  }
  bool complete() const { return complete_; }

 private:
  static constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  static DIR* list(int cgroup_fd) {
    const int fd = ::openat(cgroup_fd, ".", kFlags);
    DIR* const listing = fd < 0 ? nullptr : ::fdopendir(fd);
    if (listing == nullptr && fd >= 0) ::close(fd);
    return listing;
  }
  void missed(int error_number) { complete_ = complete_ && is_absent(error_number); }

  const std::function<bool(std::string_view)>& look_;
  std::size_t cgroups_ = 0;
  bool complete_ = true, wanted_ = true;
};

}  // namespace

bool visit_processes(int cgroup_fd, const std::function<bool(std::string_view pid)>& look) {
  Visit visit(look);
  visit.enter(cgroup_fd, 0);
  return visit.complete();
}

bool is_absent(int error_number) {
  return error_number == ENOENT || error_number == ESRCH || error_number == ENOTDIR ||
         error_number == ELOOP || error_number == ENODEV;
}

std::string process_command(const std::string& proc_root, std::string_view pid) {
  const auto command = read_file(proc_root + "/" + std::string(pid) + "/comm", kCommandBytes);
  return command ? std::string(trim(*command)) : std::string();
}

std::string process_program(const std::string& proc_root, std::string_view pid) {
  const std::string link = proc_root + "/" + std::string(pid) + "/exe";
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace cgphase
