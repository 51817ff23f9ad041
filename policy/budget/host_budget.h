// Limits how many lowerings the host allows per window, and decides which container is next. All
// containers of one pipeline share it.
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
#include "policy/safety_config.h"

namespace cgphase {

// A container that asks is in the queue until it is served or stops asking. Of the owners in the
// queue, the one served longest ago is next; within an owner, the container served longest ago. So
// many containers of one owner delay those of another by one window at most, and none starves.
class HostBudget {
 public:
  // Maximum number of remembered owners and containers. The one served longest ago is dropped.
  static constexpr std::size_t kMostTurns = 4096;

  // Called in each tick in which all other rules allow a lowering of this container.
  bool may_lower(MonotonicTime now, std::string_view owner, CgroupId container,
                 const SafetyConfig& config);
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
