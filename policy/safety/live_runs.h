// The highest need of each managed run, saved while the run goes on: a daemon that is killed leaves
// it to its successor, which does not lower memory below it while it knows too little of the run.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// By cgroup. The numbers of a cgroup may come back after a boot, so a name has to fit, too.
class LiveRuns {
 public:
  static constexpr std::size_t kRuns = 1024;           // more are not kept
  static constexpr std::size_t kMostNameBytes = 512;   // as escape_name() prints it; else not kept
  static constexpr double kNewsRatio = 1.02;           // growth by less is not worth a write

  void keep(CgroupId id, const std::string& container, double need_bytes);
  // Forgets those that `lives` denies.
  void retain(auto lives) {
    std::erase_if(runs_, [&](const auto& one) { return !lives(one.first); });
  }
  // In bytes; absent where nothing is known of this run.
  std::optional<double> peak_bytes(CgroupId id, const std::string& container) const;
  std::size_t size() const { return runs_.size(); }
  // True once after something was kept that is worth a write.
  bool take_news();

  // A list of objects `device`, `inode`, `name` and `need_bytes`.
  nlohmann::json to_json() const;
  // Errors: invalid, naming what is wrong.
  static Result<LiveRuns> from_json(const nlohmann::json& json);

 private:
  struct Run {
    std::string name;  // printable
    double need_bytes = 0, saved_bytes = 0;
  };
  std::map<CgroupId, Run> runs_;
  bool news_ = false;
};

}  // namespace cgphase
