#include "agent/logging/journal_share.h"

#include <algorithm>
#include <chrono>

namespace cgphase {

bool JournalShare::take(std::string_view owner, MonotonicTime now) {
  if (!owner.starts_with("uid ")) return true;
  User& user = users_.try_emplace(std::string(owner), User{.filled = now}).first->second;
  const double minutes = std::chrono::duration<double, std::ratio<60>>(now - user.filled).count();
  user.left = std::min(kAtOnce, user.left + kPerMinute * std::max(minutes, 0.0));
  user.filled = std::max(user.filled, now);
  if (user.left < 1) {
    ++left_out_;
    return false;
  }
  user.left -= 1;
  return true;
}

}  // namespace cgphase
