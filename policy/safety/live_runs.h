// The highest need of each managed run, saved during the run. If the daemon is killed, its
// successor does not lower memory below this while it knows too little of the run.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// By cgroup. After a reboot a cgroup id may be reused, so the name must match, too.
class LiveRuns {
 public:
  static constexpr std::size_t kRuns = 1024;           // further runs are not stored
  static constexpr std::size_t kMostNameBytes = 512;   // as printed by escape_name(); longer ones
                                                       // are not stored
  static constexpr double kNewsRatio = 1.02;           // smaller growth is not worth a write

  void keep(CgroupId id, const std::string& container, double need_bytes);
  // Removes the runs for which `lives` returns false.
  void retain(auto lives) {
    std::erase_if(runs_, [&](const auto& one) { return !lives(one.first); });
  }
  // In bytes. Absent if this run is unknown.
  std::optional<double> peak_bytes(CgroupId id, const std::string& container) const;
  std::size_t size() const { return runs_.size(); }
  // True once after a change that is worth a write.
  bool take_news();

  struct Run {
    std::string name;  // printable
    double need_bytes = 0, saved_bytes = 0;
  };
  using Runs = std::map<CgroupId, Run>;
  const Runs& runs() const { return runs_; }
  // Saved runs. Errors: invalid (too many runs, a name too long, a need out of range).
  static Result<LiveRuns> from_runs(Runs runs);

 private:
  Runs runs_;
  bool news_ = false;
};

}  // namespace cgphase
