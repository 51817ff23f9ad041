// The measurements of one container that may be changed: need and its course, throttling, pressure,
// and usual values. rail_watch.h has the part that is computed for every container.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "policy/phase/histogram.h"
#include "policy/phase/phase_usage.h"
#include "policy/safety/safety_rules.h"

namespace cgphase {

// The measures that a trial compares. Stalls are shares of time; faults and refaults are per
// second.
enum class Measure : std::size_t {
  cpu_stall, memory_stall, io_stall, refaults, major_faults, throttled, cpu_cores,
  gpu_utilisation
};
inline constexpr std::size_t kMeasureCount = 8;
using Measures = std::array<std::optional<double>, kMeasureCount>;

constexpr const char* to_string(Measure measure) {
  constexpr const char* kNames[kMeasureCount] = {
      "cpu stall",    "memory stall", "io stall", "refaults",
      "major faults", "throttled",    "cpu cores", "gpu utilisation"};
  return kNames[static_cast<std::size_t>(measure)];
}

// Need over a sliding time window, in at most kPieces pieces with their extremes.
class NeedWindow {
 public:
  static constexpr std::size_t kPieces = 64;
  explicit NeedWindow(std::chrono::nanoseconds length) : length_(length) {}
  void add(MonotonicTime time, double bytes);
  void clear();
  bool full() const;  // whether the samples span the whole window
  double low() const;
  double high() const;  // 0 when empty

 private:
  struct Piece {
    MonotonicTime begin;
    double low = 0, high = 0;
  };
  std::chrono::nanoseconds length_;
  std::deque<Piece> pieces_;
  std::optional<MonotonicTime> first_, latest_;
};

class UsageTracker {
 public:
  // `config` must outlive it.
  explicit UsageTracker(const SafetyConfig& config);

  // Call it once per tick, in order of time. `lost`: EventTracker::lost() of this sample.
  void add(const SafetyInput& input, bool lost);

  bool throttled() const;                      // above the tolerance in the last seconds
  double throttled_seconds() const { return throttled_seconds_; }  // over the last interval
  void forget_phases() { usage_ = {}; }
  // A raise at that time answered the throttling.
  void forget_throttling(MonotonicTime time) {
    throttling_.clear();
    answered_ = time;
  }
  // By PSI, or by its substitutes on a kernel without it. For CPU all three pressures must be
  // quiet: while tasks wait for memory or a disk, their CPU use is too low.
  bool quiet(Resource resource) const;
  bool stalled() const { return stalled_; }    // memory pressure `full` is high

  std::optional<double> cpu_cores() const;     // over the last interval
  std::optional<double> need_bytes() const { return need_; }
  // From the measured seconds in the phase. A throttled second counts as the limit in force.
  double usage_p99_cores(const Phase& phase) const { return usage_.p99_cores(phase); }
  double need_peak_bytes() const { return peak_.high(); }
  double need_bytes_per_sec() const { return need_rate_; }
  double allocation_p99_bytes_per_sec() const;
  bool steady(double limit_bytes) const;       // whether need was steady for a whole dwell
  // Whether need grew over the last interval by more than the kernel's batching can explain.
  bool growing(double limit_bytes) const;
  const Measures& measures() const { return measures_; }
  // Whether there are enough samples in the phase (in any phase if CPU is not measured), and need
  // was observed for the whole peak window.
  bool know(const Phase& phase, double enough_samples) const;
  // The evidence of the latest sample, for the journal.
  Evidence evidence(const Sample& sample) const;

 private:
  struct Throttling {
    MonotonicTime time;
    double usec = 0;
    std::uint64_t periods = 0;
  };
  // Sums of stall times, in microseconds.
  struct Stalls {
    MonotonicTime time;
    Counter cpu, memory, io;
  };
  void follow_need(const SafetyInput& input);
  void follow_stalls(const SafetyInput& input);
  std::optional<double> stall(Counter Stalls::*sum, const PressureLine& line) const;
  void measure(const SafetyInput& input);
  void follow_usage(const SafetyInput& input, bool lost);
  void follow_throttling(const SafetyInput& input);
  void judge_pressure(const SafetyInput& input);

  const SafetyConfig& config_;
  bool cpu_quiet_ = false, memory_io_quiet_ = false, stalled_ = false;
  std::optional<MonotonicTime> memory_strain_until_, throttle_strain_until_;
  double samples_ = 0;
  bool cpu_measured_ = false;  // ever
  std::optional<double> need_, need_before_, explained_;
  double grown_ = 0;  // certain growth of need over the last interval
  double need_rate_ = 0;
  double throttled_seconds_ = 0;
  NeedWindow peak_, dwell_;
  DecayingHistogram allocation_;  // bytes per second
  std::vector<Throttling> throttling_;
  std::optional<MonotonicTime> answered_;  // the newest one that a raise answered
  std::optional<MonotonicTime> last_time_;  // of the previous sample
  std::vector<Stalls> stalls_;  // the newest, and back to the last one that is kStallSpan old
  PhaseUsage usage_;
  Measures measures_{};
};

}  // namespace cgphase
