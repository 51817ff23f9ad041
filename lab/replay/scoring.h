// One resource of one execution in the closed loop, and the sums of its measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lab/replay/closed_loop.h"
#include "lab/replay/demand.h"
#include "lab/replay/measures.h"
#include "lab/replay/replay.h"

namespace cgphase {

// Times of decisions: the first sample, and the sample nearest to each further step.
class DecisionGrid {
 public:
  // A step of 0 means each sample. `cadence_seconds` is the usual interval between samples.
  DecisionGrid(double step_seconds, double cadence_seconds)
      : step_(step_seconds), early_(cadence_seconds / 2) {}
  bool due(double seconds);

 private:
  double step_, early_;
  std::optional<double> next_;
};

// usage_usec of cpu.stat as it would have grown: demand minus backlog. It falls only if there is no
// backlog and the recorded counter fell.
class ServedUsage {
 public:
  Counter at(const Counter& asked_usec, double backlog_core_seconds);

 private:
  std::uint64_t last_ = 0;
};

// For each point in turn, call advance(), then decide() and set() if a decision is due.
class ResourceScore {
 public:
  // Floors of every policy: the smallest quota of the kernel at a period of 100 ms, and the memory
  // below which no process runs.
  static constexpr double kCpuFloorCores = 0.01;
  static constexpr double kMemoryFloorBytes = 4.0 * 1024 * 1024;

  // `points` must outlive this. A `ceiling` of 0 means that neither a limit nor the host is known:
  // nothing can be compared, and the sums stay empty.
  ResourceScore(const ReplaySettings& settings, Resource resource, double ceiling,
                std::span<const DemandPoint> points);

  // Advances to point `index`, in order from 0. Absent over a gap.
  std::optional<LoopInterval> advance(std::size_t index);
  // Decision of `oracle-max` at point `index`.
  void decide(std::size_t index);
  // Sets the limit that a policy wants: rounded up to a microsecond of quota or a page, and kept
  // between floor and ceiling.
  void set(double wanted);

  double limit() const { return loop_.limit(); }
  double backlog() const { return loop_.backlog(); }  // core-seconds
  ReplaySums sums() const;  // including the window that is still open

 private:
  struct Window {
    std::int64_t number = -1;
    bool over = false, passed = false, working_set_passed = false;
  };
  std::optional<double> value(const DemandPoint& point) const;
  void score(std::size_t index, double now, const LoopInterval& interval, double decided);
  void enter_window(double seconds);
  static void close(const Window& window, ReplaySums& sums);

  Resource resource_;
  bool measured_;
  double ceiling_, window_seconds_;
  std::span<const DemandPoint> points_;
  std::vector<std::optional<double>> oracle_;  // limit of oracle-max at each point
  double oracle_in_force_;
  ResourceLoop loop_;
  ResourceLoop working_set_loop_;  // the same limits, with a guard on the working set
  ReplaySums sums_;
  double failed_ = 0;  // byte-seconds allocated to failed attempts
  Window window_;
};

}  // namespace cgphase
