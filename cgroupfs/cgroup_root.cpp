#include "cgroupfs/cgroup_root.h"

#include <fcntl.h>
#include <libcgroup.h>
#include <mntent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/parse.h"
#include "cgroupfs/cgroup_directory.h"

namespace cgphase {
namespace {

constexpr std::size_t kControllersBytes = 4096;
constexpr const char* kUnified =
    "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all on the kernel command line";

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// libcgroup would print its failures. They are returned as values instead.
void swallow_log(void*, int, const char*, va_list) {}

// Runs once per process: libcgroup reads the mounts at this call and never again.
bool initialise_libcgroup() {
  static const bool ready = [] {
    ::cgroup_set_logger(swallow_log, CGROUP_LOG_ERROR, nullptr);
    return ::cgroup_init() == 0;
  }();
  return ready;
}

// The mounts that libcgroup finds when it walks over the controllers.
struct Mounted {
  std::string v2;  // the first cgroup2 mount point, empty if there is no such mount
  std::vector<std::string> v1_controllers;
};

void add_mount(const cgroup_mount_point& found, Mounted& mounted) {
  const Hierarchy hierarchy = hierarchy_of(found.path);
  if (hierarchy == Hierarchy::v2 && mounted.v2.empty()) mounted.v2 = found.path;
  if (hierarchy == Hierarchy::v1) mounted.v1_controllers.emplace_back(found.name);
}

// libcgroup skips a cgroup2 mount without controllers, and a hybrid host has such a mount.
std::string cgroup2_mount_of_kernel() {
  const std::unique_ptr<FILE, int (*)(FILE*)> mounts(::setmntent("/proc/self/mounts", "r"),
                                                     ::endmntent);
  if (!mounts) return {};
  while (const mntent* entry = ::getmntent(mounts.get()))
    if (std::string_view(entry->mnt_type) == "cgroup2") return entry->mnt_dir;
  return {};
}

Mounted look_at_mounts() {
  Mounted mounted;
  if (initialise_libcgroup()) {
    void* walk = nullptr;
    cgroup_mount_point found;
    int status = ::cgroup_get_controller_begin(&walk, &found);
    const bool begun = status == 0 || status == ECGEOF;
    for (; status == 0; status = ::cgroup_get_controller_next(&walk, &found))
      add_mount(found, mounted);
    if (begun) ::cgroup_get_controller_end(&walk);
  }
  if (mounted.v2.empty()) mounted.v2 = cgroup2_mount_of_kernel();
  return mounted;
}

Result<std::vector<std::string>> read_controllers(const std::string& path) {
  const auto text = read_file(path + "/cgroup.controllers", kControllersBytes);
  if (!text) return std::unexpected(text.error());
  std::vector<std::string> controllers;
  std::string_view rest = *text, word;
  while (next_word(rest, word)) controllers.emplace_back(word);
  return controllers;
}

// Checks the directory and cgroup.subtree_control, which every delegation makes writable.
bool may_write(const std::string& path) {
  const std::string file = path + "/cgroup.subtree_control";
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) return false;
  return ::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0 || errno == ENOENT;
}

CgroupRoot no_root(std::string reason) { return {{}, {}, false, false, false, std::move(reason)}; }

CgroupRoot no_cgroup2(const Mounted& mounted) {
  if (mounted.v1_controllers.empty())
    return no_root("no cgroup file system is mounted here: mount one with 'mount -t cgroup2 none "
                   "/sys/fs/cgroup', or name it with --cgroup-root");
  std::string reason = "this host has cgroup v1 only, cgphase needs cgroup v2: ";
  return no_root(reason += kUnified);
}

// systemd mounts each controller of cgroup v1 below one directory.
bool has_v1_below(const std::string& path) {
  for (const char* controller : {"/memory", "/cpu", "/systemd"})
    if (hierarchy_of(path + controller) == Hierarchy::v1) return true;
  return false;
}

Result<CgroupRoot> not_a_root(const std::string& path, const Error& error) {
  if (error.kind != ErrorKind::not_found) return std::unexpected(error);
  if (hierarchy_of(path + "/unified") == Hierarchy::v2)
    return no_root(path + ": this host is hybrid, its cgroup v2 hierarchy is " + path +
                   "/unified: use it as --cgroup-root to observe; to enforce, " + kUnified);
  if (hierarchy_of(path) == Hierarchy::v1 || has_v1_below(path))
    return no_root(path + ": this is cgroup v1, cgphase needs cgroup v2: " + kUnified);
  struct stat status;
  if (::stat(path.c_str(), &status) != 0)
    return failure(ErrorKind::not_found,
                   path + ": no such directory; name the cgroup v2 mount with --cgroup-root");
  return failure(ErrorKind::unsupported,
                 path +
                     ": not a cgroup v2 directory (no cgroup.controllers in it); name the mount "
                     "with --cgroup-root");
}

}  // namespace

CgroupRoot judge_cgroup_root(std::string path, std::vector<std::string> controllers,
                             const std::vector<std::string>& v1_controllers) {
  CgroupRoot root{std::move(path), std::move(controllers), false, false, {}};
  root.hybrid = contains(v1_controllers, "cpu") || contains(v1_controllers, "memory");
  const bool cpu = contains(root.controllers, "cpu");
  const bool memory = contains(root.controllers, "memory");
  root.can_enforce = cpu && memory;
  if (root.can_enforce) return root;
  const std::string missing = cpu ? "memory" : memory ? "cpu" : "cpu and memory";
  if (root.hybrid)
    root.reason = "this host is hybrid, its " + missing +
                  (cpu || memory ? " controller is" : " controllers are") +
                  " on cgroup v1, so limits can be observed but not changed: " + kUnified;
  else if (!memory)
    root.reason = "the kernel offers no " + missing +
                  " controller on cgroup v2, so limits cannot be changed: boot with "
                  "cgroup_enable=memory on the kernel command line, or enable it above " +
                  root.path;
  else
    root.reason =
        "the kernel offers no cpu controller on cgroup v2, so limits cannot be changed: "
        "enable it in cgroup.subtree_control above " +
        root.path;
  return root;
}

Result<CgroupRoot> discover_cgroup_root(const std::optional<std::string>& asked) {
  const Mounted mounted = look_at_mounts();
  const std::string path = asked.value_or(mounted.v2);
  if (path.empty()) return no_cgroup2(mounted);
  auto controllers = read_controllers(path);
  if (!controllers) return not_a_root(path, controllers.error());
  const bool real = hierarchy_of(path) == Hierarchy::v2;
  CgroupRoot root = judge_cgroup_root(path, std::move(*controllers),
                                      real ? mounted.v1_controllers : std::vector<std::string>{});
  root.writable = may_write(path);
  if (root.can_enforce && !root.writable)
    root.reason = path + " cannot be written by uid " + std::to_string(::geteuid()) +
                  ", so limits cannot be changed: run as root, or name a cgroup delegated to this "
                  "user with --cgroup-root";
  return root;
}

}  // namespace cgphase
