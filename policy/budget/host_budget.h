// Lowerings of the whole host in the current window, shared by all containers of one pipeline, and
// whose turn the next one is.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "policy/rails_config.h"

namespace cgphase {

// A container that asks waits until it is served or stops asking. A lowering goes to the owner that
// was served longest ago among those that wait, and within an owner to the container that was. So
// many containers of one owner delay another owner's by one window at most, and nobody starves.
class HostBudget {
 public:
  // Owners and containers whose turns are remembered; beyond that the one served longest ago goes.
  static constexpr std::size_t kMostTurns = 4096;

  // Asked at each tick at which everything else allows a lowering of this container.
  bool may_lower(MonotonicTime now, std::string_view owner, CgroupId container,
                 const RailsConfig& config);
  void lowered(MonotonicTime now, std::string_view owner, CgroupId container);

 private:
  struct Turn {
    std::optional<MonotonicTime> asked, served;  // the last time; absent: never
  };
  struct ContainerTurn : Turn {
    std::string owner;
  };

  void begin_tick(MonotonicTime now);
  bool waits(const Turn& turn) const;

  std::deque<MonotonicTime> lowerings_;
  std::map<std::string, Turn, std::less<>> owners_;
  std::map<CgroupId, ContainerTurn> containers_;
  std::optional<MonotonicTime> tick_, previous_tick_;
};

}  // namespace cgphase
