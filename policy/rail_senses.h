// What the rails make of the samples of one container: need and its course, throttling, events,
// pressure, and whether the data are fresh enough to lower anything.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "policy/guard_rails.h"
#include "policy/histogram.h"
#include "policy/known_sources.h"
#include "policy/phase_usage.h"

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

  // Once per tick, in order of time.
  void add(const RailInput& input);

  // Too little is known of this moment to lower anything: first sample, gap, frozen or just
  // thawed, a counter fell, a file that was there is not, or one of these a short while ago, or
  // processes that just started.
  bool stale() const { return stale_; }
  bool emptied() const { return emptied_; }    // no process is left
  bool started() const { return started_; }    // the first process came
  bool max_event() const { return max_event_; }
  bool oom_event() const { return oom_event_; }
  bool limit_met() const { return limit_met_; }  // an OOM for the limit, not for the whole host
  bool throttled() const;                      // more than tolerated in the last seconds
  void forget_phases() { usage_ = {}; }
  void forget_throttling() { throttling_.clear(); }  // it was answered by a raise
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
  bool growing(double limit_bytes) const;      // need, over the last interval
  const Measures& measures() const { return measures_; }
  // Of the sample that was added last, for the journal.
  Evidence evidence(const Sample& sample) const;

 private:
  struct Throttling {
    MonotonicTime time;
    double usec = 0;
    std::uint64_t periods = 0;
  };
  void judge_freshness(const RailInput& input);
  void follow_events(const RailInput& input);
  void follow_need(const RailInput& input);
  void measure(const RailInput& input);
  void follow_usage(const RailInput& input);
  void follow_throttling(const RailInput& input);
  void judge_pressure(const RailInput& input);

  const RailsConfig& config_;
  bool stale_ = true, lost_ = true, emptied_ = false, started_ = false, max_event_ = false,
       oom_event_ = false, limit_met_ = false;
  bool cpu_quiet_ = false, memory_io_quiet_ = false, stalled_ = false;
  KnownSources sources_;
  std::optional<bool> populated_;
  std::optional<MonotonicTime> hold_until_, memory_strain_until_, throttle_strain_until_;
  MemoryEvents events_;
  OwnLimitEvents own_events_;  // of the last sample
  std::optional<double> need_, need_before_;
  double need_rate_ = 0;
  NeedWindow peak_, dwell_;
  DecayingHistogram allocation_;  // bytes per second
  std::vector<Throttling> throttling_;
  PhaseUsage usage_;
  Measures measures_{};
};

}  // namespace cgphase
