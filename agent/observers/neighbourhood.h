// Detects other programs that act on limits on this host. Beside another manager of limits nothing
// is written. Containers that a program may kill on pressure keep a larger memory margin
// (docs/safety.md).
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

  // Scans /proc if the last scan is a minute old or failed. The last result is valid until a scan
  // succeeds. True if this scan did.
  bool scan(MonotonicTime now);
  // The next scan() scans, even if the last one is recent.
  void request_scan() { requested_ = true; }

  // Why nothing may be written on this host: another manager of limits, or no scan has succeeded.
  // One sentence without its full stop; empty if writing is allowed.
  const std::string& standing_down() const { return standing_down_; }

  // True if a program kills on pressure on this host, or near the limit of this container.
  bool wants_margin(const CgroupPath& container) const;

  // Programs that do not forbid to write, but call for a larger margin, or why the scan failed.
  Source source() const;

 private:
  void judge();

  std::string proc_root_;
  CgroupPath above_root_;
  Neighbours found_;
  KernelThreads kernel_threads_;
  bool killer_ = false;
  std::set<CgroupPath> monitored_;  // cgroups with a monitor, and all above them
  std::optional<MonotonicTime> scanned_;  // the last scan that succeeded
  bool requested_ = false;
  std::string error_ = "not scanned yet";
  std::string standing_down_;
};

}  // namespace cgphase
