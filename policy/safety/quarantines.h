// Quarantines by container name. They outlive the cgroup and the daemon. A job that had an OOM
// under our limit is therefore not lowered again right after its engine restarts it
// (docs/safety.md).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "policy/decision.h"
#include "policy/phase/remembered_time.h"

namespace cgphase {

// Times are of the wall clock, because they outlive daemon and boot.
class Quarantines {
 public:
  static constexpr std::size_t kContainers = 128;     // above this, the quarantine that ends first
                                                      // is dropped
  static constexpr std::size_t kMostNameBytes = 512;  // as printed by escape_name(); longer ones
                                                      // are not stored

  // Starts a quarantine now. The name is the one that the container has again after its engine
  // restarts it. Two containers may share a name. A longer running quarantine stays.
  void keep(const std::string& container, Resource resource, std::chrono::nanoseconds length,
            WallTime now);
  void add(const Quarantines& earlier, WallTime now);
  // The remaining time; zero if there is none.
  std::chrono::nanoseconds left(const std::string& container, Resource resource,
                                WallTime now) const;
  // Call it once per tick, as for RememberedTime.
  bool follow_clock(WallTime now);
  std::size_t size() const { return containers_.size(); }

  struct Quarantine {
    RememberedTime begin;
    std::chrono::nanoseconds length{0};  // zero: none
    std::chrono::nanoseconds left(WallTime now) const;
  };
  using ByResource = std::array<Quarantine, 2>;
  using Containers = std::map<std::string, ByResource>;  // by escaped name
  const Containers& containers() const { return containers_; }
  // Errors: invalid (too many containers, a name too long, a length out of range).
  static Result<Quarantines> from_containers(Containers containers);

 private:
  static std::chrono::nanoseconds longest_left(const ByResource& of, WallTime now);

  Containers containers_;
};

}  // namespace cgphase
