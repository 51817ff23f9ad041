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

// When decisions are made: at the first sample, and at the one nearest to each further step.
class DecisionGrid {
 public:
  // A step of 0: at each sample. `cadence_seconds` is the usual distance of two samples.
  DecisionGrid(double step_seconds, double cadence_seconds)
      : step_(step_seconds), early_(cadence_seconds / 2) {}
  bool due(double seconds);

 private:
  double step_, early_;
  std::optional<double> next_;
};

// cpu.stat usage_usec as it would have grown: what was asked for, less what still waits. It falls
// only where nothing waits and the recorded counter fell.
class ServedUsage {
 public:
  Counter at(const Counter& asked_usec, double backlog_core_seconds);

 private:
  std::uint64_t last_ = 0;
};

// For each point in turn: advance() to it, then decide() and set() where a decision is due.
class ResourceScore {
 public:
  // Floors of every policy: the smallest quota that the kernel takes at a period of 100 ms, and
  // what no process runs below.
  static constexpr double kCpuFloorCores = 0.01;
  static constexpr double kMemoryFloorBytes = 4.0 * 1024 * 1024;

  // `points` must outlive this. A `ceiling` of 0: neither a limit nor the host is known, there is
  // nothing to compare with, and the sums stay empty.
  ResourceScore(const ReplaySettings& settings, Resource resource, double ceiling,
                std::span<const DemandPoint> points);

  // Time goes on to point `index`, in order from 0. Absent where nothing is known of the way.
  std::optional<LoopInterval> advance(std::size_t index);
  // `oracle-max` decides at point `index`.
  void decide(std::size_t index);
  // A limit comes into force that a policy wants. Rounded up to a microsecond of quota or a page;
  // between the floor and the ceiling.
  void set(double wanted);

  double limit() const { return loop_.limit(); }
  double backlog() const { return loop_.backlog(); }  // core-seconds
  ReplaySums sums() const;  // with the window that is still open

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
  std::vector<std::optional<double>> oracle_;  // of each point, what oracle-max wants there
  double oracle_in_force_;
  ResourceLoop loop_;
  ResourceLoop working_set_loop_;  // the same limits, with a guard that watches the working set
  ReplaySums sums_;
  Window window_;
};

}  // namespace cgphase
