// Samples the host: finds the containers below one cgroup v2 root and reads them once per tick,
// through descriptors that stay open.
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

// One source of data: present, or the reason why not. `status` shows it.
struct Source {
  std::string name;    // "cgroup v2", "memory controller", "PSI", ...
  bool present = false;
  std::string detail;  // one sentence if absent
};

// Maximum number of sampled containers. More wait until there is room, which sources() reports.
inline constexpr std::size_t kMaxContainers = 4096;
// Maximum in the subtree of one owner (CgroupOwner). They also use at most a quarter of the
// descriptors of this process.
inline constexpr std::size_t kMaxContainersPerOwner = 256;
inline constexpr std::size_t kDescriptorsPerContainer = 24;

// Owned and used by the agent's thread alone.
class NodeSampler {
 public:
  struct Options {
    // A cgroup2 mount, or a plain directory in tests. Empty without cgroup v2: then there are no
    // containers.
    std::string cgroup_root;
    std::string proc_root = "/proc";
    std::string engine_root = "/";           // where /var/lib/docker, /run/systemd, ... are
    std::vector<std::string> include = {};   // globs on CgroupPath: opt-in services and others
    std::chrono::seconds sweep{60};          // interval of the full walk that backs up inotify
    // Maximum age of memory.stat in the sample of a container that is only observed. No safety rule
    // uses it there, and half a model step is accurate enough. 0: read at every tick.
    std::chrono::nanoseconds observed_memory_age{0};
    // If a BPF program walks over cgroups, its values are used instead of files.
    OpenCgroupPull open_pull = {};
  };

  // Raises this process's soft limit of descriptors to the hard limit, because a container needs
  // about twenty. Errors: not_found (no such root), denied.
  static Result<NodeSampler> open(const Options& options);
  NodeSampler(NodeSampler&&) noexcept;
  NodeSampler& operator=(NodeSampler&&) noexcept;
  ~NodeSampler();

  // Reads one tick. A cgroup that appears after the first tick is reported when it has a process or
  // is 5 s old, because its owner sets it up first. A cgroup that vanishes while it is read is in
  // `vanished`, not an error. A tick allocates nothing per container once their number is steady.
  void sample(const Clock& clock, NodeSample& tick);

  // Changes the option, from the next tick on.
  void set_observed_memory_age(std::chrono::nanoseconds age);

  // Sets whether limits of this container may be changed; the default is true. If true, memory.stat
  // is read at every tick, and so are events that no walk reports. Limits are read every
  // kDetailLimitsPeriod, even without a reported write. If false, memory.stat is read at the pace
  // of Options. If there are many such containers and no walk, they are sparse (see ReadPlan). A
  // container that is not tracked is ignored.
  void set_detail(CgroupId id, bool detailed);

  // A new descriptor (dup) of the directory of a tracked container; `gone` if it is not tracked.
  Result<Fd> duplicate_directory(CgroupId id) const;

  // Number of samples with an impossible value since open(). They were dropped, or lack that value.
  std::uint64_t impossible_samples() const;

  // The sources of this host, found at open() and at each sweep.
  std::vector<Source> sources() const;

 private:
  class Impl;
  explicit NodeSampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
