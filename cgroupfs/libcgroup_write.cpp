#include "cgroupfs/libcgroup_write.h"

#include <fcntl.h>
#include <libcgroup.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <memory>

#include "base/fd.h"

namespace cgphase {
namespace {

// Failures come back as values; libcgroup would print them.
void swallow_log(void*, int, const char*, va_list) {}

struct FreeCgroup {
  void operator()(struct cgroup* group) const { ::cgroup_free(&group); }
};
using Group = std::unique_ptr<struct cgroup, FreeCgroup>;

bool is_cgroup2(const char* path) {
  struct statfs filesystem;
  return ::statfs(path, &filesystem) == 0 && filesystem.f_type == CGROUP2_SUPER_MAGIC;
}

// Where libcgroup would write this controller; empty where it would not.
std::string mount_point_of(const char* controller) {
  char* found = nullptr;
  if (::cgroup_get_subsys_mount_point(controller, &found) != 0 || found == nullptr) return {};
  std::string path = found;
  ::free(found);
  return is_cgroup2(path.c_str()) ? path : std::string();
}

std::string trim_slashes(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

const char* controller_of(Knob knob) {
  return knob == Knob::memory_max || knob == Knob::memory_high ? "memory" : "cpu";
}

Status check_identity(const std::string& directory, CgroupId id) {
  struct stat status;
  if (::stat(directory.c_str(), &status) == 0 && status.st_dev == id.device &&
      status.st_ino == id.inode)
    return {};
  return failure(ErrorKind::gone, "another cgroup, or none, has this path now");
}

Status classify(int directory_fd, Knob knob, int status, int library_errno) {
  const char* name = file_name(knob);
  if (!directory_alive(directory_fd))
    return failure(ErrorKind::gone, std::string(name) + ": the cgroup was removed");
  if (::faccessat(directory_fd, name, W_OK, 0) != 0) return errno_failure(name, errno);
  if (status == ECGOTHER) return errno_failure(name, library_errno);
  return failure(ErrorKind::io, std::string(name) + ": libcgroup: " + ::cgroup_strerror(status));
}

}  // namespace

void take_back_from_successor(const std::string& directory, Knob knob, const KnobText& text,
                              const KnobText& original) {
  const auto fd = open_path(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return;
  const auto found = read_knob(fd->get(), knob);
  if (found && same_value(knob, *found, text)) (void)write_knob(fd->get(), knob, original);
}

Status initialise_libcgroup() {
  static const int status = [] {
    ::cgroup_set_logger(swallow_log, CGROUP_LOG_ERROR, nullptr);
    return ::cgroup_init();
  }();
  if (status == 0) return {};
  return failure(ErrorKind::unsupported, std::string("libcgroup: ") + ::cgroup_strerror(status));
}

Result<LibcgroupWrite> LibcgroupWrite::open(const std::string& cgroup_root) {
  std::error_code error;
  const std::string root = std::filesystem::canonical(cgroup_root, error).string();
  if (error) return errno_failure(cgroup_root, error.value());
  if (Status ready = initialise_libcgroup(); !ready) return std::unexpected(ready.error());
  const std::string mount = mount_point_of("cpu");
  if (mount.empty() || mount != mount_point_of("memory") || !(root + "/").starts_with(mount + "/"))
    return failure(ErrorKind::unsupported,
                   cgroup_root + ": libcgroup knows no cgroup v2 mount with cpu and memory here");
  LibcgroupWrite result;
  result.root_ = root;
  result.prefix_ = trim_slashes(std::string_view(root).substr(mount.size()));
  return result;
}

Status LibcgroupWrite::write(CgroupId id, const CgroupPath& path, int directory_fd, Knob knob,
                             const KnobText& text, const KnobText& original) const {
  const std::string directory = root_ + path;
  if (Status same = check_identity(directory, id); !same) return same;
  const std::string name = trim_slashes(prefix_ + "/" + trim_slashes(path));
  const Group group(::cgroup_new_cgroup(name.c_str()));
  if (!group) return failure(ErrorKind::io, "libcgroup: out of memory");
  cgroup_controller* controller = ::cgroup_add_controller(group.get(), controller_of(knob));
  if (controller == nullptr) return failure(ErrorKind::io, "libcgroup: no controller");
  const std::string value(text.view());
  if (::cgroup_add_value_string(controller, file_name(knob), value.c_str()) != 0)
    return failure(ErrorKind::invalid, "libcgroup: the value was not taken");
  const int status = ::cgroup_modify_cgroup(group.get());
  if (Status same = check_identity(directory, id); !same) {
    take_back_from_successor(directory, knob, text, original);
    return same;
  }
  if (status != 0) return classify(directory_fd, knob, status, ::cgroup_get_last_errno());
  return {};
}

}  // namespace cgphase
