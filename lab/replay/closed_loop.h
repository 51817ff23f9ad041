// Simulates one resource of one container under a limit over time: piecewise linear demand, and a
// guard. A value type for one thread. The same calls give the same bits on every machine.
#pragma once

#include <optional>

#include "policy/decision.h"

namespace cgphase {

// raises by the guard
struct ClosedLoop {
  bool enabled = false;
  double time_to_raise_seconds = 0.1;
  double guard_threshold = 0.95;
  // Memory also counts as near if it would pass the limit within so long at its present pace.
  double growth_seconds = 0;
};

// Sums between two samples. "Unit" is cores or bytes.
struct LoopInterval {
  double allocated = 0;      // unit-seconds
  double demanded = 0;       // unit-seconds
  double served = 0;         // unit-seconds: demand, minus what had to wait, plus what had waited
  double overrun = 0;        // unit-seconds of demand above the limit
  double slack_seconds = 0;  // integral of (limit - demand) / limit, not below 0
  double waited = 0;         // core-seconds that began to wait
  double throttled_seconds = 0;  // time with a backlog
  double longest_delay_seconds = 0;  // largest backlog / limit
  double lowest_limit = 0;
  int raises = 0;            // of the guard
  bool passed = false;       // demand exceeded a limit below the ceiling
};

class ResourceLoop {
 public:
  // The limit starts at the ceiling, which is above 0.
  ResourceLoop(const ClosedLoop& loop, Resource resource, double ceiling);

  double limit() const { return limit_; }
  double backlog() const { return backlog_; }  // core-seconds
  // Sets the limit to `wanted`, at most the ceiling.
  void set(double wanted);
  // Advances by `seconds` (above 0) while demand goes from `from` to `to`.
  LoopInterval run(double seconds, double from, double to);
  // Advances over a gap: the backlog is forgotten.
  void gap();

 private:
  struct Line {  // demand from the start of the interval
    double from, slope;
    double at(double seconds) const { return from + slope * seconds; }
  };
  // The demand at which the limit is near.
  double near(const Line& line) const;
  void stay(const Line& line, double begin, double end, LoopInterval& interval);
  void queue(double length, double from, double to, LoopInterval& interval);
  void raise();

  ClosedLoop loop_;
  Resource resource_;
  double ceiling_, limit_;
  double backlog_ = 0;
  std::optional<double> raise_in_;  // seconds until the guard's pending raise
};

}  // namespace cgphase
