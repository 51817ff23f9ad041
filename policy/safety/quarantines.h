// Quarantines by container, which outlive the cgroup that earned them and the daemon: a job that we
// killed and that its engine starts again is not squeezed anew (docs/safety.md).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "policy/decision.h"
#include "policy/phase/remembered_time.h"

namespace cgphase {

// Time is the wall clock's, for it outlives the daemon and the boot.
class Quarantines {
 public:
  static constexpr std::size_t kContainers = 128;     // of more, what ends first is forgotten
  static constexpr std::size_t kMostNameBytes = 512;  // as escape_name() prints it; else not kept

  // Of one container from now on, by a name that it has again when its engine starts it again; two
  // may share one. A longer one that runs already stays.
  void keep(const std::string& container, Resource resource, std::chrono::nanoseconds length,
            WallTime now);
  void add(const Quarantines& earlier, WallTime now);
  // What is left of it; zero where there is none.
  std::chrono::nanoseconds left(const std::string& container, Resource resource,
                                WallTime now) const;
  // Once per tick, as RememberedTime.
  bool follow_clock(WallTime now);
  std::size_t size() const { return containers_.size(); }

  // An object by name, of objects `cpu` and `memory` with `seconds` and when that began.
  nlohmann::json to_json() const;
  // Errors: invalid, naming what is wrong.
  static Result<Quarantines> from_json(const nlohmann::json& json);

 private:
  struct Quarantine {
    RememberedTime begin;
    std::chrono::nanoseconds length{0};
    std::chrono::nanoseconds left(WallTime now) const;
  };
  using ByResource = std::array<Quarantine, 2>;
  static std::chrono::nanoseconds longest_left(const ByResource& of, WallTime now);

  std::map<std::string, ByResource> containers_;  // by name, printable
};

}  // namespace cgphase
