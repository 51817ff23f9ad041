#include "policy/budget/host_budget.h"

#include <algorithm>

namespace cgphase {
namespace {

constexpr std::size_t kMostLowerings = 4096;  // per host and window

// Drops turns that neither wait nor were served, then those served longest ago.
template <class Turns, class Waits>
void forget_turns(Turns& turns, std::size_t most, Waits waits) {
  std::erase_if(turns, [&](const auto& one) { return !one.second.served && !waits(one.second); });
  while (turns.size() > most) {
    const auto earlier = [](const auto& a, const auto& b) {
      return a.second.served < b.second.served;
    };
    turns.erase(std::ranges::min_element(turns, earlier));
  }
}

}  // namespace

// Whether it asked in this tick or the previous one. In the latter case it may still ask in this
// one.
bool HostBudget::waits(const Turn& turn) const {
  return turn.asked && (!previous_tick_ || *turn.asked >= *previous_tick_) &&
         (!turn.served || *turn.asked > *turn.served);
}

void HostBudget::begin_tick(MonotonicTime now) {
  if (tick_ == now) return;
  previous_tick_ = tick_;
  tick_ = now;
  const auto waiting = [this](const Turn& turn) { return waits(turn); };
  forget_turns(owners_, kMostTurns, waiting);
  forget_turns(containers_, kMostTurns, waiting);
}

bool HostBudget::may_lower(MonotonicTime now, std::string_view owner, CgroupId container,
                           const SafetyConfig& config) {
  begin_tick(now);
  Turn& whole = owners_[std::string(owner)];
  ContainerTurn& own = containers_[container];
  whole.asked = own.asked = now;
  own.owner = owner;
  int recent = 0;
  for (auto time = lowerings_.rbegin(); time != lowerings_.rend(); ++time, ++recent)
    if (now - *time >= config.host_lower_window) break;
  if (recent >= config.host_lowers_per_window) return false;
  for (const auto& [name, turn] : owners_)
    if (waits(turn) && turn.served < whole.served) return false;
  for (const auto& [id, turn] : containers_)
    if (turn.owner == owner && waits(turn) && turn.served < own.served) return false;
  return true;
}

void HostBudget::lowered(MonotonicTime now, std::string_view owner, CgroupId container) {
  begin_tick(now);
  lowerings_.push_back(now);
  if (lowerings_.size() > kMostLowerings) lowerings_.pop_front();
  owners_[std::string(owner)].served = now;
  containers_[container].served = now;
}

}  // namespace cgphase
