// Measures the allocation of one container while it ran: the limits in force over time, compared
// with the limits of its user. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cgroupfs/limits.h"
#include "tests/workloads/mix.h"

namespace cgphase::workloads {

// The knobs of a container as the kernel writes them.
struct KnobTexts {
  std::string cpu_max, memory_max, memory_high;
  friend bool operator==(const KnobTexts&, const KnobTexts&) = default;
};

// "80000 100000" is 0.8; "max 100000" is the host's `cpu_cores`; malformed text is absent.
std::optional<double> cores_of(std::string_view cpu_max, double host_cores);
// "max" is the host's `bytes`.
std::optional<std::uint64_t> bytes_of(std::string_view memory_max, std::uint64_t host_bytes);

class AllocationMeter {
 public:
  struct Change {
    double seconds = 0;  // since the container's start
    std::string knob, from, to;
  };

  // Limits at `seconds`, ascending. They count until the next reading. Unreadable text counts as
  // the previous limits.
  void read(double seconds, const KnobTexts& knobs);
  // Ends the readings: the last limits count up to here.
  void end(double seconds);

  double core_seconds() const { return core_seconds_; }
  double byte_seconds() const { return byte_seconds_; }
  double seconds() const { return last_seconds_ - first_seconds_; }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  void note_change(double seconds, const char* knob, const std::string& from,
                   const std::string& to);

  bool started_ = false;
  double first_seconds_ = 0, last_seconds_ = 0;
  KnobTexts knobs_;
  double cores_ = 0, bytes_ = 0;
  double core_seconds_ = 0, byte_seconds_ = 0;
  std::vector<Change> changes_;
};

}  // namespace cgphase::workloads
