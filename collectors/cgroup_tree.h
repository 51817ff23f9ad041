// Tracks which cgroups exist below one root. inotify reports directories that come and go. A
// periodic full walk backs it up, because events can be lost and watches can run out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// Maximum number of path elements below the root. A deeper cgroup is counted, not followed.
inline constexpr std::size_t kMaxCgroupDepth = 24;
// Maximum length of a printed path, so that a reply has room for all. A cgroup with a longer path
// is counted, not followed.
inline constexpr std::size_t kMaxCgroupPathBytes = 1024;
// Maximum number of known cgroups. More are counted, not followed.
inline constexpr std::size_t kMaxCgroups = 16384;
// Maximum in the subtree of one owner (CgroupOwner). All owners together have half of kMaxCgroups.
inline constexpr std::size_t kMaxCgroupsPerOwner = 1024;
// Events that one owner's subtree may cause at once, and per second. Beyond that, the directory
// that causes them is not watched for a time and then scanned once. The time doubles from
// kFirstScanDelay to kLastScanDelay.
inline constexpr int kOwnerEventBurst = 200;
inline constexpr int kOwnerEventsPerSecond = 20;
inline constexpr std::chrono::seconds kFirstScanDelay{2}, kLastScanDelay{64};

// The owner of a subtree: an ordinary user to whom it is delegated, or the container that contains
// it. Other cgroups of root have no owner, because root has no quota.
struct CgroupOwner {
  std::string name;         // "uid 1000", or the path of the container
  std::size_t count = 0;    // known cgroups of this owner
  std::size_t beyond = 0;   // cgroups that the last scan did not follow
  bool delayed = false;     // part of its subtree is scanned later
};

// Changes since the last call. Ordered by path, so that a parent comes before its children.
struct TreeChange {
  struct Appeared {
    CgroupId id;
    CgroupPath path;
  };
  std::vector<Appeared> appeared;
  std::vector<CgroupId> vanished;
  std::vector<Appeared> woken;  // cgroups of listen() whose cgroup.events changed
};

// Owned by the sampler's thread. Nothing here is an error. A directory that vanishes while it is
// read does not exist. One that cannot be opened is counted.
class CgroupTree {
 public:
  enum class Watching { on, off };
  struct Bounds {
    std::size_t depth = kMaxCgroupDepth;
    std::size_t count = kMaxCgroups;
    std::size_t path_bytes = kMaxCgroupPathBytes;
    std::size_t owner_count = kMaxCgroupsPerOwner;
  };

  // Errors: those of opening `root`. The tree is empty until the first sweep().
  static Result<CgroupTree> open(const std::string& root, Watching watching = Watching::on);
  static Result<CgroupTree> open(const std::string& root, Watching watching, Bounds bounds);

  // The tree of a host without cgroup v2: always empty.
  static CgroupTree none() { return {}; }

  // Readable if directories came or went; -1 without inotify.
  int event_fd() const { return inotify_.get(); }
  int root_fd() const { return root_.get(); }

  // Processes the inotify events since the last call, and scans that are due by `now`. Without
  // events it costs one system call and no allocation. True if events were lost, so that a sweep()
  // is due.
  bool drain(TreeChange& change, MonotonicTime now = {});
  // Walks the whole tree.
  void sweep(TreeChange& change);

  // Opens a directory that drain() or sweep() reported, without following links in any element.
  // `gone` if another directory has its path now.
  Result<Fd> open_directory(const CgroupPath& path, CgroupId id) const;

  // Turns reports of this cgroup in `change.woken` on or off. False if it cannot be watched.
  bool listen(const CgroupPath& path, int directory_fd, bool on);

  // The owner of the subtree that contains `path`; null if it has none.
  const CgroupOwner* owner_of(const CgroupPath& path) const;
  // Owners with cgroups that are not followed, or scanned later.
  std::vector<CgroupOwner> owners_in_trouble() const;

  std::size_t size() const { return nodes_.size(); }
  // These are counted by the last sweep() and the events since.
  std::size_t beyond_depth() const { return beyond_depth_; }  // too deep, or too long a path
  std::size_t beyond_count() const { return beyond_count_; }
  std::size_t unwatched() const { return unwatched_; }    // inotify watches ran out
  std::size_t unreadable() const { return unreadable_; }  // directories that could not be opened

 private:
  struct Subtree : CgroupOwner {
    double tokens = kOwnerEventBurst;
    MonotonicTime refilled;
    std::chrono::seconds delay{0};
    std::optional<MonotonicTime> due;
    std::set<CgroupPath> unwatched;  // directories to scan at `due`
  };
  using SubtreePointer = std::shared_ptr<Subtree>;

  struct Node {
    CgroupId id;
    int watch = -1;
    std::uint64_t sweep = 0;      // number of the last sweep that saw it
    SubtreePointer owner, below;  // owners of itself and of its children; null: no owner
    bool listening = false;
  };
  using Nodes = std::map<CgroupPath, Node, std::less<>>;

  CgroupTree() = default;
  void visit(int parent_fd, const CgroupPath& parent, const char* name, TreeChange& change);
  void visit_children(int directory_fd, const CgroupPath& path, TreeChange& change);
  // Adds a new node or keeps the known one; false if a limit forbids it.
  bool admit(int directory_fd, const CgroupPath& path, TreeChange& change);
  SubtreePointer below_of(const CgroupPath& path) const;
  SubtreePointer subtree_below(const CgroupPath& path, std::uint64_t uid,
                               const SubtreePointer& owner);
  bool has_room(const SubtreePointer& owner) const;
  void take_event(int watch, std::uint32_t mask, const char* name, TreeChange& change,
                  MonotonicTime now);
  static bool spend(Subtree& owner, MonotonicTime now);
  void delay(Subtree& owner, const CgroupPath& path, MonotonicTime now);
  void scan_delayed(TreeChange& change, MonotonicTime now);
  void scan(const CgroupPath& path, TreeChange& change);
  void reconcile(const CgroupPath& parent, const char* name, TreeChange& change);
  void drop(std::string_view path, TreeChange& change);
  Nodes::iterator erase(Nodes::iterator at, TreeChange& change);
  // Keep the known nodes of a directory that cannot be read.
  void keep(const CgroupPath& path);
  void leave(const CgroupPath& path);
  int watch(int directory_fd, const CgroupPath& path, bool listening);
  Fd open_below(std::string_view path) const;

  Fd root_, inotify_;
  Bounds bounds_;
  Nodes nodes_;  // without the root
  std::map<std::string, std::weak_ptr<Subtree>> owners_;
  std::size_t owned_ = 0;  // nodes with an owner
  std::unordered_map<int, CgroupPath> watches_;
  std::uint64_t sweep_ = 0;
  std::size_t beyond_depth_ = 0, beyond_count_ = 0, unwatched_ = 0, unreadable_ = 0;
};

}  // namespace cgphase
