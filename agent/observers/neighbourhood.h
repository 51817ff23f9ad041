// Who else acts on limits on this host, and what that means: beside another manager nothing is
// written, and what may be killed on pressure keeps a larger memory margin (docs/safety.md).
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "collectors/neighbours.h"
#include "collectors/node_sampler.h"
#include "collectors/process_cgroup.h"

namespace cgphase {

// Owned and used by the agent's thread alone.
class Neighbourhood {
 public:
  static constexpr std::chrono::seconds kPeriod{60};

  Neighbourhood(std::string proc_root, const std::string& cgroup_root)
      : proc_root_(std::move(proc_root)),
        above_root_(kernel_path_of_root(proc_root_, cgroup_root)) {}

  // Looks through /proc where the last look is a minute old; after one that failed, at once again.
  // What was seen stands until a look succeeds. True after a look that did.
  bool look(MonotonicTime now);
  // Somebody asked: the next look() looks, however young the last one is.
  void look_again() { asked_ = true; }

  // Why nothing may be written on this host, one sentence without its full stop: another manager of
  // limits, or that it was never possible to look. Empty where nothing speaks against it.
  const std::string& standing_down() const { return standing_down_; }

  // Somebody kills on pressure here, or near the limit of this container.
  bool wants_margin(const CgroupPath& container) const;

  // Who is seen and does not make us stand down, or why nobody can be seen.
  Source source() const;

 private:
  void judge();

  std::string proc_root_;
  CgroupPath above_root_;
  Neighbours found_;
  KernelThreads kernel_threads_;
  bool killer_ = false;
  std::set<CgroupPath> monitored_;  // cgroups with a monitor, and all above them
  std::optional<MonotonicTime> looked_;  // the last look that succeeded
  bool asked_ = false;
  std::string error_ = "not looked for yet";
  std::string standing_down_;
};

}  // namespace cgphase
