#include "collectors/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::uint32_t kWatchMask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                     IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr std::size_t kEventBytes = 16384;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

bool is_absence(int error) { return error == ENOENT || error == ENODEV; }

bool is_dots(const char* name) { return !std::strcmp(name, ".") || !std::strcmp(name, ".."); }

// Child directories of an open directory; symbolic links are none.
Directory list(int directory_fd) {
  // A descriptor of its own: reading moves the offset, and closedir() closes it.
  const int fd = ::openat(directory_fd, ".", kDirectoryFlags);
  if (fd < 0) return nullptr;
  Directory directory(::fdopendir(fd));
  if (!directory) {
    const int error = errno;
    ::close(fd);
    errno = error;
  }
  return directory;
}

bool may_be_directory(int parent_fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status{};
  return ::fstatat(parent_fd, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

std::size_t depth_of(std::string_view path) {
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

void sort_by_path(TreeChange& change) {
  std::ranges::sort(change.appeared, {}, &TreeChange::Appeared::path);
}

CgroupPath child_path(const CgroupPath& parent, const char* name) {
  return parent == "/" ? parent + name : parent + "/" + name;
}

}  // namespace

Result<CgroupTree> CgroupTree::open(const std::string& root, Watching watching) {
  return open(root, watching, Bounds{});
}

Result<CgroupTree> CgroupTree::open(const std::string& root, Watching watching, Bounds bounds) {
  CgroupTree tree;
  tree.bounds_ = bounds;
  Result<Fd> directory = open_path(root, O_RDONLY | O_DIRECTORY);
  if (!directory) return std::unexpected(directory.error());
  tree.root_ = std::move(*directory);
  // Without inotify (too many instances, an old sandbox) the sweep does all.
  if (watching == Watching::on) tree.inotify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (tree.inotify_.valid()) tree.watch(tree.root_.get(), "/");
  return tree;
}

void CgroupTree::sweep(TreeChange& change) {
  ++sweep_;
  beyond_depth_ = beyond_count_ = unwatched_ = unreadable_ = 0;
  visit_children(root_.get(), "/", change);
  std::vector<CgroupPath> lost;
  for (const auto& [path, node] : nodes_)
    if (node.sweep != sweep_) lost.push_back(path);
  for (const CgroupPath& path : lost) drop(path, change);
  sort_by_path(change);
}

bool CgroupTree::drain(TreeChange& change) {
  if (!inotify_.valid()) return false;
  alignas(inotify_event) char events[kEventBytes];
  bool overflow = false;
  for (;;) {
    const ssize_t count = ::read(inotify_.get(), events, sizeof events);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (const char* at = events; at < events + count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      const auto parent = watches_.find(event->wd);
      if (event->mask & IN_Q_OVERFLOW) overflow = true;
      else if (parent == watches_.end()) continue;
      else if (event->mask & IN_IGNORED) watches_.erase(parent);
      else if (event->mask & IN_ISDIR) reconcile(CgroupPath(parent->second), event->name, change);
    }
  }
  sort_by_path(change);
  return overflow;
}

// An event says only that something happened to a name: what is there now decides, so late, double
// and reordered events do no harm.
void CgroupTree::reconcile(const CgroupPath& parent, const char* name, TreeChange& change) {
  const CgroupPath path = child_path(parent, name);
  const Fd directory = parent == "/" ? Fd(::dup(root_.get())) : open_below(parent);
  if (!directory.valid()) return is_absence(errno) ? drop(path, change) : leave(path);
  struct stat status{};
  const bool present = ::fstatat(directory.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISDIR(status.st_mode);
  if (!present) return drop(path, change);
  visit(directory.get(), parent, name, change);
}

// What cannot be looked at, for want of descriptors or memory, is not gone: it stands as it was.
void CgroupTree::leave(const CgroupPath& path) {
  ++unreadable_;
  const CgroupPath below = path == "/" ? path : path + "/";
  for (auto at = nodes_.lower_bound(path); at != nodes_.end(); ++at) {
    if (at->first == path || at->first.starts_with(below)) at->second.sweep = sweep_;
    else if (at->first > below) break;
  }
}

void CgroupTree::visit(int parent_fd, const CgroupPath& parent, const char* name,
                       TreeChange& change) {
  const CgroupPath path = child_path(parent, name);
  const Fd directory(::openat(parent_fd, name, kDirectoryFlags));
  if (!directory.valid()) {
    if (!is_absence(errno)) leave(path);
    return;
  }
  if (admit(directory.get(), path, change)) visit_children(directory.get(), path, change);
}

void CgroupTree::visit_children(int directory_fd, const CgroupPath& path, TreeChange& change) {
  struct stat status{};
  // cgroupfs counts child directories in the link count: most cgroups need no listing.
  if (::fstat(directory_fd, &status) != 0 || status.st_nlink == 2) return;
  const Directory directory = list(directory_fd);
  if (!directory) {
    if (!is_absence(errno)) leave(path);
    return;
  }
  while (const dirent* entry = ::readdir(directory.get())) {
    if (is_dots(entry->d_name) || !may_be_directory(directory_fd, *entry)) continue;
    visit(directory_fd, path, entry->d_name, change);
  }
}

bool CgroupTree::admit(int directory_fd, const CgroupPath& path, TreeChange& change) {
  struct stat status{};
  if (::fstat(directory_fd, &status) != 0) return false;
  const CgroupId id{status.st_dev, status.st_ino};
  if (const auto known = nodes_.find(path); known != nodes_.end()) {
    if (known->second.id == id) {
      known->second.sweep = sweep_;
      if (known->second.watch < 0) known->second.watch = watch(directory_fd, path);
      return true;
    }
    drop(path, change);  // the same name is another cgroup now
  }
  if (depth_of(path) > bounds_.depth || escape_name(path).size() > bounds_.path_bytes)
    return ++beyond_depth_, false;
  if (nodes_.size() >= bounds_.count) return ++beyond_count_, false;
  // The watch before the listing, so that nothing can come between the two unseen.
  nodes_.emplace(path, Node{id, watch(directory_fd, path), sweep_});
  change.appeared.push_back({id, path});
  return true;
}

int CgroupTree::watch(int directory_fd, const CgroupPath& path) {
  if (!inotify_.valid()) return -1;
  // By descriptor: the path may be another directory by now.
  const std::string name = "/proc/self/fd/" + std::to_string(directory_fd);
  const int descriptor = ::inotify_add_watch(inotify_.get(), name.c_str(), kWatchMask);
  if (descriptor < 0) return ++unwatched_, -1;
  watches_.insert_or_assign(descriptor, path);
  return descriptor;
}

void CgroupTree::drop(std::string_view path, TreeChange& change) {
  const auto erase = [&](Nodes::iterator at) {
    const Node& node = at->second;
    // The kernel drops the watch with the directory; this is for one that was only renamed.
    if (node.watch >= 0 && watches_.erase(node.watch) > 0)
      ::inotify_rm_watch(inotify_.get(), node.watch);
    // One that came and went within one look was never told of.
    if (std::erase_if(change.appeared, [&](const auto& one) { return one.id == node.id; }) == 0)
      change.vanished.push_back(node.id);
    return nodes_.erase(at);
  };
  if (const auto at = nodes_.find(path); at != nodes_.end()) erase(at);
  const std::string below = std::string(path) + "/";
  for (auto at = nodes_.lower_bound(below); at != nodes_.end() && at->first.starts_with(below);)
    at = erase(at);
}

Result<Fd> CgroupTree::open_directory(const CgroupPath& path, CgroupId id) const {
  Fd directory = open_below(path);
  struct stat status{};
  if (!directory.valid() || ::fstat(directory.get(), &status) != 0)
    return errno_failure("cgroup " + escape_name(path), errno);
  if (CgroupId{status.st_dev, status.st_ino} != id)
    return failure(ErrorKind::gone, "cgroup " + escape_name(path) + ": replaced by another one");
  return directory;
}

Fd CgroupTree::open_below(std::string_view path) const {
  Fd directory(::dup(root_.get()));
  while (!path.empty() && directory.valid()) {
    CHECK_INVARIANT(path.front() == '/');
    path.remove_prefix(1);
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(name.size());
    directory = Fd(::openat(directory.get(), name.c_str(), kDirectoryFlags));
  }
  return directory;
}

}  // namespace cgphase
