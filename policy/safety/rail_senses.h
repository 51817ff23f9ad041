// What the rails make of the samples of one container that may be acted upon: need and its course,
// throttling, pressure, and what was usual. What is followed of every container is in rail_watch.h.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "policy/phase/histogram.h"
#include "policy/phase/phase_usage.h"
#include "policy/safety/guard_rails.h"

namespace cgphase {

// What a trial compares. Stalls are shares of time, faults and refaults per second.
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

// The need over a sliding window of time, in at most kPieces pieces that keep their extremes.
class NeedWindow {
 public:
  static constexpr std::size_t kPieces = 64;
  explicit NeedWindow(std::chrono::nanoseconds length) : length_(length) {}
  void add(MonotonicTime time, double bytes);
  void clear();
  bool full() const;  // samples span the whole window
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

class RailSenses {
 public:
  // `config` outlives it.
  explicit RailSenses(const RailsConfig& config);

  // Once per tick, in order of time. `lost`: RailWatch::lost() of this sample.
  void add(const RailInput& input, bool lost);

  bool throttled() const;                      // more than tolerated in the last seconds
  void forget_phases() { usage_ = {}; }
  // It was answered by a raise at that time.
  void forget_throttling(MonotonicTime time) {
    throttling_.clear();
    answered_ = time;
  }
  // PSI, or its substitutes where there is none. CPU usage measured while tasks waited for memory
  // or a disk says too little, so CPU needs all three quiet.
  bool quiet(Resource resource) const;
  bool stalled() const { return stalled_; }    // memory pressure `full` is high

  std::optional<double> cpu_cores() const;     // over the last interval
  std::optional<double> need_bytes() const { return need_; }
  // Of the seconds in the phase that were measured; a throttled one counts as the limit in force.
  double usage_p99_cores(const Phase& phase) const { return usage_.p99_cores(phase); }
  double need_peak_bytes() const { return peak_.high(); }
  double need_bytes_per_sec() const { return need_rate_; }
  double allocation_p99_bytes_per_sec() const;
  bool steady(double limit_bytes) const;       // need, for a whole dwell
  // Need, over the last interval, by more than what the kernel's batches make it seem to.
  bool growing(double limit_bytes) const;
  const Measures& measures() const { return measures_; }
  // They had so many samples in the phase (in any, where CPU is not measured), and saw the need
  // for as long as its peak is asked for.
  bool know(const Phase& phase, double enough_samples) const;
  // Of the sample that was added last, for the journal.
  Evidence evidence(const Sample& sample) const;

 private:
  struct Throttling {
    MonotonicTime time;
    double usec = 0;
    std::uint64_t periods = 0;
  };
  // Sums of stalls, in microseconds.
  struct Stalls {
    MonotonicTime time;
    Counter cpu, memory, io;
  };
  void follow_need(const RailInput& input);
  void follow_stalls(const RailInput& input);
  std::optional<double> stall(Counter Stalls::*sum, const PressureLine& line) const;
  void measure(const RailInput& input);
  void follow_usage(const RailInput& input, bool lost);
  void follow_throttling(const RailInput& input);
  void judge_pressure(const RailInput& input);

  const RailsConfig& config_;
  bool cpu_quiet_ = false, memory_io_quiet_ = false, stalled_ = false;
  std::optional<MonotonicTime> memory_strain_until_, throttle_strain_until_;
  double samples_ = 0;
  bool cpu_measured_ = false;  // ever
  std::optional<double> need_, need_before_, explained_;
  double grown_ = 0;  // what need certainly grew by over the last interval
  double need_rate_ = 0;
  NeedWindow peak_, dwell_;
  DecayingHistogram allocation_;  // bytes per second
  std::vector<Throttling> throttling_;
  std::optional<MonotonicTime> answered_;  // the newest, by a raise
  std::optional<MonotonicTime> last_time_;  // of the sample before
  std::vector<Stalls> stalls_;  // the newest, and back to the last that is kStallSpan old
  PhaseUsage usage_;
  Measures measures_{};
};

}  // namespace cgphase
