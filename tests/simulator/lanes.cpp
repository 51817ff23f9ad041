#include "tests/simulator/lanes.h"

namespace cgphase::simulator {

Lanes& lanes() {
  static Lanes all;
  return all;
}

void Lanes::submitted(bool raise) {
  const std::lock_guard lock(mutex_);
  raise_submitted_ = raise;
  ++(raise ? raises_ : lowerings_);
}

void Lanes::settle() {
  std::unique_lock lock(mutex_);
  waiting_.store(true);
  changed_.wait(lock, [&] { return raises_ == 0 && (lowerings_ == 0 || parked_); });
  waiting_.store(false);
}

bool Lanes::parked() {
  const std::lock_guard lock(mutex_);
  return parked_;
}

std::int64_t Lanes::parked_until_ns() {
  const std::lock_guard lock(mutex_);
  return until_ns_;
}

void Lanes::resume(bool interrupted) {
  {
    const std::lock_guard lock(mutex_);
    if (!parked_) return;
    parked_ = false;
    resumed_ = true;
    interrupted_ = interrupted;
  }
  changed_.notify_all();
  settle();
}

void Lanes::forget_unanswered() {
  const std::lock_guard lock(mutex_);
  raises_ = lowerings_ = 0;
}

void Lanes::answered(int fd, By by) {
  if (fd != result_fd_.load()) return;
  {
    const std::lock_guard lock(mutex_);
    const bool raise = by == By::raising || (by == By::submitter && raise_submitted_);
    --(raise ? raises_ : lowerings_);
  }
  changed_.notify_all();
}

bool Lanes::park(std::int64_t until_ns) {
  std::unique_lock lock(mutex_);
  until_ns_ = until_ns;
  parked_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return resumed_; });
  resumed_ = false;
  return interrupted_;
}

void Lanes::set_deadline(std::optional<std::int64_t> at_ns) {
  const std::lock_guard lock(mutex_);
  deadline_ns_ = at_ns;
}

std::optional<std::int64_t> Lanes::deadline_ns() {
  const std::lock_guard lock(mutex_);
  return deadline_ns_;
}

}  // namespace cgphase::simulator
