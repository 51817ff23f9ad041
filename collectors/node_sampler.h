// The senses of the daemon: finds the containers below one cgroup v2 root and reads them once per
// tick through descriptors that stay open.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "collectors/cgroup_pull.h"
#include "collectors/sample.h"

namespace cgphase {

// One source of facts: present, or absent and why. Shown by `status`.
struct Source {
  std::string name;    // "cgroup v2", "memory controller", "PSI", ...
  bool present = false;
  std::string detail;  // one sentence when absent
};

// Containers read at once. One more waits until there is room; sources() tells.
inline constexpr std::size_t kMaxContainers = 4096;
// Of them in the subtree of one owner (CgroupOwner), and at most so many that their descriptors are
// a quarter of what this process may have.
inline constexpr std::size_t kMaxContainersPerOwner = 256;
inline constexpr std::size_t kDescriptorsPerContainer = 24;

// Owned and used by the agent's thread alone.
class NodeSampler {
 public:
  struct Options {
    // A cgroup2 mount, or a plain directory in tests; empty where there is none: no container then.
    std::string cgroup_root;
    std::string proc_root = "/proc";
    std::string engine_root = "/";           // where /var/lib/docker, /run/systemd, ... lie
    std::vector<std::string> include = {};   // globs on CgroupPath: opt-in services and others
    std::chrono::seconds sweep{60};          // full walk behind inotify
    // How old memory.stat may be in the sample of a container that is only observed: no rail acts
    // on it, and half a step of the model is near enough. 0: read at every tick.
    std::chrono::nanoseconds observed_memory_age{0};
    // Where a program walks over cgroups, what it tells is not read from files.
    OpenCgroupPull open_pull = {};
  };

  // Raises this process's soft limit on descriptors to the hard one: a container holds about
  // twenty. Errors: not_found (no such root), unsupported (cgroup v1), denied.
  static Result<NodeSampler> open(const Options& options);
  NodeSampler(NodeSampler&&) noexcept;
  NodeSampler& operator=(NodeSampler&&) noexcept;
  ~NodeSampler();

  // One tick. A cgroup that comes after the first tick is told of when it has a process, or is 5 s
  // old: until then its owner sets it up. A cgroup that vanishes while it is read is in `vanished`,
  // not an error. A new tick costs no allocation per container once their number is steady.
  void sample(const Clock& clock, NodeSample& tick);

  // As in Options, from now on.
  void set_observed_memory_age(std::chrono::nanoseconds age);

  // Whether somebody may change limits of this container: so it is until this says otherwise. Then
  // memory.stat and, where no walk tells them, events are read at every tick, and limits every
  // kUntoldCloseLimitsPeriod even if the kernel tells of no write. Of one that is only observed,
  // memory.stat is read at the pace of Options; one of many of which no walk tells is sparse (see
  // Look). A container that is not tracked is passed over.
  void attend(CgroupId id, bool close);

  // A descriptor of its own (dup) for the directory of a container now tracked; gone otherwise.
  Result<Fd> duplicate_directory(CgroupId id) const;

  // Samples with a value that cannot be, since open(): left out, or without that value.
  std::uint64_t impossible_samples() const;

  // What can be read here, found at open() and at each sweep.
  std::vector<Source> sources() const;

 private:
  class Impl;
  explicit NodeSampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
