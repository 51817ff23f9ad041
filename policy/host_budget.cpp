#include "policy/guard_rails.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostLowerings = 4096;  // of a host in one window

}  // namespace

bool HostBudget::may_lower(MonotonicTime now, const RailsConfig& config) const {
  int recent = 0;
  for (auto time = lowerings_.rbegin(); time != lowerings_.rend(); ++time) {
    if (now - *time >= config.host_lower_window) break;
    recent += 1;
  }
  return recent < config.host_lowers_per_window;
}

void HostBudget::lowered(MonotonicTime now) {
  lowerings_.push_back(now);
  if (lowerings_.size() > kMostLowerings) lowerings_.pop_front();
}

}  // namespace cgphase
