// One resource of one container under a limit, over time: demand that moves on straight lines, and
// the guard. A value; one thread. The same calls give the same bits on every machine.
#pragma once

#include <optional>

#include "policy/decision.h"

namespace cgphase {

// The same for every policy. `time_to_raise` after the demand crosses `guard_threshold` times the
// limit in force, CPU goes up by a fifth, again at each further time_to_raise until the demand
// fits; memory goes to the ceiling. CPU demand that is not met waits, and is worked off when the
// quota allows. Not enabled: no guard, and nothing waits.
struct ClosedLoop {
  bool enabled = false;
  double time_to_raise_seconds = 0.1;
  double guard_threshold = 0.95;
};

// What happened between two samples. "Unit" is cores or bytes.
struct LoopInterval {
  double allocated = 0;      // unit-seconds
  double demanded = 0;       // unit-seconds
  double served = 0;         // unit-seconds: demand, less what had to wait, plus what had waited
  double overrun = 0;        // unit-seconds of demand above the limit
  double slack_seconds = 0;  // integral of (limit - demand) / limit, not below 0
  double waited = 0;         // core-seconds that began to wait
  double throttled_seconds = 0;  // while any waited
  double longest_delay_seconds = 0;  // largest backlog / limit
  double lowest_limit = 0;
  int raises = 0;            // of the guard
  bool passed = false;       // demand was above a limit below the ceiling
};

class ResourceLoop {
 public:
  // The limit begins at the ceiling. `ceiling` above zero.
  ResourceLoop(const ClosedLoop& loop, Resource resource, double ceiling);

  double limit() const { return limit_; }
  double backlog() const { return backlog_; }  // core-seconds
  // The limit becomes `wanted`, at most the ceiling.
  void set(double wanted);
  // Time goes on by `seconds` (above zero), while demand goes from `from` to `to`.
  LoopInterval run(double seconds, double from, double to);
  // Time that nothing is known of: what waited is forgotten.
  void gap();

 private:
  struct Line {  // demand from the interval's beginning
    double from, slope;
    double at(double seconds) const { return from + slope * seconds; }
  };
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
