// Creates cgroups on the machine that runs this, for tests and benchmarks.
#pragma once

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// The mount point of cgroup v2, with v1 or alone; empty if there is none.
inline std::string cgroup2_mount() {
  const auto mounts = read_file("/proc/self/mountinfo", 1U << 20);
  if (!mounts) return {};
  std::string_view rest = *mounts, line, word;
  while (next_line(rest, line)) {
    if (line.find(" - cgroup2 ") == std::string_view::npos) continue;
    for (int i = 0; i < 5; ++i) next_word(line, word);
    return std::string(word);
  }
  return {};
}

// A cgroup below the machine's own. The destructor removes it; it must be empty then. If none can
// be created, its descriptor is -1.
class HostCgroup {
 public:
  explicit HostCgroup(const std::string& parent = "") : root_(cgroup2_mount()) {
    static int count = 0;
    path_ = parent + "/cgphase-bpf-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    if (::mkdir(directory().c_str(), 0755) != 0) return;
    if (auto opened = open_path(directory(), O_RDONLY | O_DIRECTORY))
      directory_ = std::move(*opened);
  }
  ~HostCgroup() { remove(); }
  HostCgroup(const HostCgroup&) = delete;
  HostCgroup& operator=(const HostCgroup&) = delete;

  void remove() { ::rmdir(directory().c_str()); }
  const std::string& path() const { return path_; }
  std::string directory() const { return root_ + path_; }
  int fd() const { return directory_.get(); }
  CgroupId id() const {
    struct stat status;
    if (::fstat(fd(), &status) != 0) return {};
    return {status.st_dev, status.st_ino};
  }

 private:
  std::string root_, path_;
  Fd directory_;
};

// As fork(), but the child is created in a cgroup, so that nothing of it is elsewhere.
inline pid_t born_in(const HostCgroup& cgroup) {
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<__u64>(cgroup.fd());
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
}

}  // namespace cgphase
