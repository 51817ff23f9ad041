// The memory of an idle container goes to swap, or is dropped if it is page cache, a little at a
// time. What that frees and what waking costs is measured (docs/safety.md). Pure.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "collectors/sample.h"
#include "model/forecast.h"
#include "policy/terms.h"

namespace cgphase {

// Idle: so little CPU for so long, in known phases only.
inline constexpr double kIdleCores = 0.02;
inline constexpr std::chrono::seconds kIdleDwell{30};
// Nothing is reclaimed if the phase usually ends within so long.
inline constexpr std::chrono::seconds kWakeAhead{30};

// What a container had asleep when it was last woken, and how long its tasks then waited for
// memory (PSI `some`). Absent without PSI.
struct Wake {
  MonotonicTime time;
  Bytes asleep;
  std::optional<std::chrono::microseconds> waited;
  friend bool operator==(const Wake&, const Wake&) = default;
};

class IdleSleep {
 public:
  // Adds a sample. `cpu_cores`: mean since `previous`; absent if it was not measured.
  void add(const Sample& previous, const Sample& sample, std::optional<double> cpu_cores,
           bool phase_known, MonotonicTime now);

  // Whether it has been idle for kIdleDwell.
  bool idle(MonotonicTime now) const {
    return idle_since_ && now - *idle_since_ >= kIdleDwell;
  }
  // So many bytes are to be reclaimed. `swap`: some of them may go to swap.
  void ask(Bytes bytes, bool swap);
  // They were. Without it nothing counts as asleep.
  void reclaimed() { taken_bytes_ = std::exchange(asked_bytes_, 0); }
  // Whether swap took something of what may have gone there, since the container became idle. If it
  // is full, the kernel would take all of it from the page cache.
  bool swap_takes() const { return swap_takes_; }

  // Freed by reclaim and not charged again since.
  Bytes asleep() const { return Bytes{static_cast<std::uint64_t>(asleep_bytes_)}; }
  // The last time that it woke with at least kLeastAsleep asleep.
  const std::optional<Wake>& last_wake() const { return wake_; }

  static constexpr double kLeastAsleep = 1 << 20;

 private:
  void follow_charge(const Sample& previous, const Sample& sample);
  void follow_wake(const Sample& previous, const Sample& sample, MonotonicTime now);

  std::optional<MonotonicTime> idle_since_;
  double asked_bytes_ = 0, taken_bytes_ = 0, asleep_bytes_ = 0;
  bool swap_takes_ = true;
  std::optional<Bytes> swap_before_;  // before the last request that swap may have taken
  std::optional<Bytes> swap_current_;
  bool waking_ = false;
  std::optional<Wake> wake_;
};

// Whether the current phase usually ends within kWakeAhead.
bool ends_soon(const std::optional<Forecast>& forecast);

// Whether the owner's terms let memory go while it is idle: not for class critical, unless they say
// so.
constexpr bool may_sleep(const Terms& terms) {
  return terms.sleep.value_or(terms.service_class != ServiceClass::critical);
}

}  // namespace cgphase
