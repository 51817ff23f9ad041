// What happens while the needs of all do not fit into the host's budget: class batch gives way
// first. Its cold memory is reclaimed, and then it stands still, one container after the other,
// where the owner consents. Nothing is killed. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "core/grants.h"
#include "core/tick.h"

namespace cgphase {

// Ticks of shortage in which only cold memory is reclaimed.
inline constexpr int kReclaimTicks = 3;
// Share of the budget that must be left again before anybody thaws early.
inline constexpr double kThawMargin = 0.05;
// Share of a container's reclaimable memory that is reclaimed in one tick.
inline constexpr double kShortReclaimRatio = 0.05;

class ShortageRule {
 public:
  bool is_short() const { return short_ticks_ > 0; }

  // Call it once per tick, after need was measured. Sets `shortage` of each view. Returns what to
  // reclaim now: of one container, because reclaims take turns.
  std::optional<CacheReclaim> step(const BudgetConfig& config, const HostCapacity& host,
                                   const OutsideShare& outside,
                                   std::span<const Claimant> claimants);

 private:
  ContainerView* next_to_freeze(std::span<const Claimant> claimants) const;

  int short_ticks_ = 0;
  bool keep_ = false;  // what is frozen stays so
  // Needs when the shortage began, or when it was last frozen.
  std::map<CgroupId, double> before_;
};

}  // namespace cgphase
