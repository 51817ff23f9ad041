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
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "collectors/containers/recognise.h"

namespace cgphase {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::uint32_t kWatchMask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                     IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr std::string_view kEventsFile = "cgroup.events";
constexpr std::size_t kEventBytes = 16384;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

bool is_absence(int error) { return error == ENOENT || error == ENODEV; }

bool is_dots(const char* name) { return !std::strcmp(name, ".") || !std::strcmp(name, ".."); }

// Lists an open directory. Callers skip symbolic links.
Directory list(int directory_fd) {
  // It needs its own descriptor: reading moves the offset, and closedir() closes it.
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
  // Without inotify (too many instances, an old sandbox) the sweep does all the work.
  if (watching == Watching::on) tree.inotify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (tree.inotify_.valid()) tree.watch(tree.root_.get(), "/", false);
  return tree;
}

void CgroupTree::sweep(TreeChange& change) {
  ++sweep_;
  beyond_depth_ = beyond_count_ = unwatched_ = unreadable_ = 0;
  std::erase_if(owners_, [](const auto& one) { return one.second.expired(); });
  for (const auto& [name, owner] : owners_) owner.lock()->beyond = 0;
  visit_children(root_.get(), "/", change);
  std::vector<CgroupPath> lost;
  for (const auto& [path, node] : nodes_)
    if (node.sweep != sweep_) lost.push_back(path);
  for (const CgroupPath& path : lost) drop(path, change);
  sort_by_path(change);
}

bool CgroupTree::drain(TreeChange& change, MonotonicTime now) {
  if (!inotify_.valid()) return false;
  scan_delayed(change, now);
  alignas(inotify_event) char events[kEventBytes];
  bool overflow = false;
  for (;;) {
    const ssize_t count = ::read(inotify_.get(), events, sizeof events);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (const char* at = events; at < events + count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      if (event->mask & IN_Q_OVERFLOW) overflow = true;
      else take_event(event->wd, event->mask, event->len > 0 ? event->name : "", change, now);
    }
  }
  sort_by_path(change);
  return overflow;
}

void CgroupTree::take_event(int watch, std::uint32_t mask, const char* name, TreeChange& change,
                            MonotonicTime now) {
  const auto known = watches_.find(watch);
  if (known == watches_.end()) return;
  if (mask & IN_IGNORED) {
    watches_.erase(known);
    return;
  }
  const CgroupPath path = known->second;
  if (const SubtreePointer owner = below_of(path); owner && !spend(*owner, now))
    return delay(*owner, path, now);
  if (mask & IN_ISDIR) return reconcile(path, name, change);
  const auto node = nodes_.find(path);
  if ((mask & IN_MODIFY) != 0 && name == kEventsFile && node != nodes_.end())
    change.woken.push_back({node->second.id, path});
}

bool CgroupTree::spend(Subtree& owner, MonotonicTime now) {
  const double seconds = std::chrono::duration<double>(now - owner.refilled).count();
  owner.refilled = now;
  owner.tokens = std::min<double>(kOwnerEventBurst,
                                  owner.tokens + std::max(seconds, 0.0) * kOwnerEventsPerSecond);
  if (owner.tokens == kOwnerEventBurst) owner.delay = std::chrono::seconds(0);
  if (owner.tokens < 1) return false;
  owner.tokens -= 1;
  return true;
}

// An unwatched directory costs nothing, whatever is created and removed in it.
void CgroupTree::delay(Subtree& owner, const CgroupPath& path, MonotonicTime now) {
  const auto node = nodes_.find(path);
  if (node == nodes_.end()) return;
  if (node->second.watch >= 0 && watches_.erase(node->second.watch) > 0)
    ::inotify_rm_watch(inotify_.get(), node->second.watch);
  node->second.watch = -1;
  owner.unwatched.insert(path);
  owner.delayed = true;
  if (owner.due) return;
  owner.delay = std::clamp(owner.delay * 2, kFirstScanDelay, kLastScanDelay);
  owner.due = now + owner.delay;
}

void CgroupTree::scan_delayed(TreeChange& change, MonotonicTime now) {
  for (const auto& [name, held] : owners_) {
    const SubtreePointer owner = held.lock();
    if (!owner || !owner->due || now < *owner->due) continue;
    owner->due.reset();
    owner->delayed = false;
    owner->beyond = 0;
    for (const CgroupPath& path : std::exchange(owner->unwatched, {})) scan(path, change);
  }
}

void CgroupTree::scan(const CgroupPath& path, TreeChange& change) {
  const auto node = nodes_.find(path);
  if (node == nodes_.end()) return;
  ++sweep_;
  const Fd directory = open_below(path);
  if (!directory.valid()) return is_absence(errno) ? drop(path, change) : leave(path);
  node->second.watch = watch(directory.get(), path, node->second.listening);
  // It may have changed meanwhile.
  if (node->second.listening) change.woken.push_back({node->second.id, path});
  visit_children(directory.get(), path, change);
  const std::string below = path + "/";
  std::vector<CgroupPath> lost;
  for (auto at = nodes_.lower_bound(below); at != nodes_.end() && at->first.starts_with(below);
       ++at)
    if (at->second.sweep != sweep_) lost.push_back(at->first);
  for (const CgroupPath& one : lost) drop(one, change);
}

// An event shows only that something happened to a name. The present state decides, so that late,
// duplicate and reordered events do no harm.
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

// A directory that cannot be read for lack of descriptors or memory is not gone. Its known nodes
// are kept.
void CgroupTree::leave(const CgroupPath& path) {
  ++unreadable_;
  keep(path);
}

void CgroupTree::keep(const CgroupPath& path) {
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
  // cgroupfs counts child directories in the link count, so that most cgroups need no listing.
  if (::fstat(directory_fd, &status) != 0 || status.st_nlink == 2) return;
  const SubtreePointer owner = below_of(path);
  if (owner && owner->unwatched.contains(path)) return keep(path);  // it is scanned later
  const Directory directory = list(directory_fd);
  if (!directory) {
    if (!is_absence(errno)) leave(path);
    return;
  }
  while (const dirent* entry = ::readdir(directory.get())) {
    if (is_dots(entry->d_name) || !may_be_directory(directory_fd, *entry)) continue;
    if (!has_room(owner) && !nodes_.contains(child_path(path, entry->d_name))) {
      // Beyond a limit, cgroups that are not followed are not even counted.
      if (++owner->beyond <= bounds_.owner_count) continue;
      return keep(path);
    }
    visit(directory_fd, path, entry->d_name, change);
  }
}

CgroupTree::SubtreePointer CgroupTree::below_of(const CgroupPath& path) const {
  const auto node = nodes_.find(path);
  return node != nodes_.end() ? node->second.below : nullptr;
}

CgroupTree::SubtreePointer CgroupTree::subtree_below(const CgroupPath& path, std::uint64_t uid,
                                                     const SubtreePointer& owner) {
  if (owner) return owner;
  std::string name;
  if (uid != 0 && uid != ::geteuid()) name = "uid " + std::to_string(uid);
  else if (is_engine_container(path)) name = path;
  else return nullptr;
  std::weak_ptr<Subtree>& known = owners_[name];
  if (SubtreePointer subtree = known.lock()) return subtree;
  auto subtree = std::make_shared<Subtree>();
  subtree->name = name;
  known = subtree;
  return subtree;
}

bool CgroupTree::has_room(const SubtreePointer& owner) const {
  return !owner || (owner->count < bounds_.owner_count && owned_ < bounds_.count / 2);
}

bool CgroupTree::admit(int directory_fd, const CgroupPath& path, TreeChange& change) {
  struct stat status{};
  if (::fstat(directory_fd, &status) != 0) return false;
  const CgroupId id{status.st_dev, status.st_ino};
  if (const auto known = nodes_.find(path); known != nodes_.end()) {
    Node& node = known->second;
    if (node.id == id) {
      node.sweep = sweep_;
      node.below = subtree_below(path, status.st_uid, node.owner);
      const bool later = node.below && node.below->unwatched.contains(path);
      if (node.watch < 0 && !later) node.watch = watch(directory_fd, path, node.listening);
      return true;
    }
    drop(path, change);  // the same name is another cgroup now
  }
  if (depth_of(path) > bounds_.depth || escape_name(path).size() > bounds_.path_bytes)
    return ++beyond_depth_, false;
  const std::size_t slash = path.rfind('/');
  SubtreePointer owner = below_of(slash == 0 ? "/" : path.substr(0, slash));
  if (!has_room(owner)) return ++owner->beyond, false;
  if (nodes_.size() >= bounds_.count) return ++beyond_count_, false;
  if (owner) ++owner->count, ++owned_;
  SubtreePointer below = subtree_below(path, status.st_uid, owner);
  // The watch comes before the listing, so that no change between them is missed.
  const int watched = watch(directory_fd, path, false);
  nodes_.emplace(path, Node{id, watched, sweep_, std::move(owner), std::move(below), false});
  change.appeared.push_back({id, path});
  return true;
}

int CgroupTree::watch(int directory_fd, const CgroupPath& path, bool listening) {
  if (!inotify_.valid()) return -1;
  // The watch uses the descriptor, because the path may be another directory by now.
  const std::string name = "/proc/self/fd/" + std::to_string(directory_fd);
  const int descriptor = ::inotify_add_watch(inotify_.get(), name.c_str(),
                                             listening ? kWatchMask | IN_MODIFY : kWatchMask);
  if (descriptor < 0) return ++unwatched_, -1;
  watches_.insert_or_assign(descriptor, path);
  return descriptor;
}

bool CgroupTree::listen(const CgroupPath& path, int directory_fd, bool on) {
  const auto node = nodes_.find(path);
  if (node == nodes_.end() || node->second.watch < 0) return false;
  if (node->second.listening == on) return true;
  node->second.listening = on;
  return watch(directory_fd, path, on) >= 0;
}

const CgroupOwner* CgroupTree::owner_of(const CgroupPath& path) const {
  const auto node = nodes_.find(path);
  return node != nodes_.end() ? node->second.owner.get() : nullptr;
}

std::vector<CgroupOwner> CgroupTree::owners_in_trouble() const {
  std::vector<CgroupOwner> owners;
  for (const auto& [name, held] : owners_)
    if (const SubtreePointer owner = held.lock(); owner && (owner->beyond > 0 || owner->delayed))
      owners.push_back(*owner);
  return owners;
}

CgroupTree::Nodes::iterator CgroupTree::erase(Nodes::iterator at, TreeChange& change) {
  const Node& node = at->second;
  // The kernel removes the watch with the directory. This is for one that was only renamed.
  if (node.watch >= 0 && watches_.erase(node.watch) > 0)
    ::inotify_rm_watch(inotify_.get(), node.watch);
  if (node.owner) --node.owner->count, --owned_;
  if (node.below) node.below->unwatched.erase(at->first);
  // A cgroup that came and went between two calls was never reported.
  if (std::erase_if(change.appeared, [&](const auto& one) { return one.id == node.id; }) == 0)
    change.vanished.push_back(node.id);
  return nodes_.erase(at);
}

void CgroupTree::drop(std::string_view path, TreeChange& change) {
  if (const auto at = nodes_.find(path); at != nodes_.end()) erase(at, change);
  const std::string below = std::string(path) + "/";
  for (auto at = nodes_.lower_bound(below); at != nodes_.end() && at->first.starts_with(below);)
    at = erase(at, change);
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
