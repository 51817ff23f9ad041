// Which cgroups exist below one root. inotify tells of directories that come and go; a full walk
// stands behind it, because events can be lost and watches can run out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "collectors/cgroup_id.h"

namespace cgphase {

// Path elements below the root. One deeper is counted, not followed.
inline constexpr std::size_t kMaxCgroupDepth = 24;
// Of a path as it is printed, so that a reply has room for all. A longer one is counted, not
// followed.
inline constexpr std::size_t kMaxCgroupPathBytes = 1024;
// Cgroups known at once. One more is counted, not followed.
inline constexpr std::size_t kMaxCgroups = 16384;

// What changed since the last look. Ordered by path, so a parent stands before its children.
struct TreeChange {
  struct Appeared {
    CgroupId id;
    CgroupPath path;
  };
  std::vector<Appeared> appeared;
  std::vector<CgroupId> vanished;
};

// Owned by the sampler's thread. Nothing here is an error: a directory that vanishes while it is
// looked at is not there, one that cannot be opened is counted.
class CgroupTree {
 public:
  enum class Watching { on, off };
  struct Bounds {
    std::size_t depth = kMaxCgroupDepth;
    std::size_t count = kMaxCgroups;
    std::size_t path_bytes = kMaxCgroupPathBytes;
  };

  // Errors: those of opening `root`. The tree is empty until the first sweep().
  static Result<CgroupTree> open(const std::string& root, Watching watching = Watching::on);
  static Result<CgroupTree> open(const std::string& root, Watching watching, Bounds bounds);

  // Of a host without cgroup v2: empty for ever.
  static CgroupTree none() { return {}; }

  // Readable when directories came or went; -1 without inotify.
  int event_fd() const { return inotify_.get(); }
  int root_fd() const { return root_.get(); }

  // Takes in what inotify told since the last call. One system call and no allocation when that
  // is nothing. True when a sweep() is due because events were lost.
  bool drain(TreeChange& change);
  // Walks the whole tree.
  void sweep(TreeChange& change);

  // A descriptor of the directory that drain() or sweep() told of, opened without following links
  // at any element. gone when it is no longer that one.
  Result<Fd> open_directory(const CgroupPath& path, CgroupId id) const;

  std::size_t size() const { return nodes_.size(); }
  // Counted by the last sweep() and the events since.
  std::size_t beyond_depth() const { return beyond_depth_; }  // too deep, or too long a path
  std::size_t beyond_count() const { return beyond_count_; }
  std::size_t unwatched() const { return unwatched_; }    // inotify watches ran out
  std::size_t unreadable() const { return unreadable_; }  // directories that could not be opened

 private:
  struct Node {
    CgroupId id;
    int watch = -1;
    std::uint64_t sweep = 0;  // the last sweep that saw it
  };
  using Nodes = std::map<CgroupPath, Node, std::less<>>;

  CgroupTree() = default;
  void visit(int parent_fd, const CgroupPath& parent, const char* name, TreeChange& change);
  void visit_children(int directory_fd, const CgroupPath& path, TreeChange& change);
  // Adds a new node or keeps the known one; false when a bound forbids it.
  bool admit(int directory_fd, const CgroupPath& path, TreeChange& change);
  void reconcile(const CgroupPath& parent, const char* name, TreeChange& change);
  void drop(std::string_view path, TreeChange& change);
  void leave(const CgroupPath& path);
  int watch(int directory_fd, const CgroupPath& path);
  Fd open_below(std::string_view path) const;

  Fd root_, inotify_;
  Bounds bounds_;
  Nodes nodes_;  // without the root
  std::unordered_map<int, CgroupPath> watches_;
  std::uint64_t sweep_ = 0;
  std::size_t beyond_depth_ = 0, beyond_count_ = 0, unwatched_ = 0, unreadable_ = 0;
};

}  // namespace cgphase
