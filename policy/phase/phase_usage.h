// How much CPU one container uses in each of its phases: what the floor of its quota is made of.
#pragma once

#include <cstddef>
#include <map>

#include "base/clock.h"
#include "model/phase.h"
#include "policy/phase/histogram.h"

namespace cgphase {

class PhaseUsage {
 public:
  static constexpr std::size_t kPhases = 33;  // more are not kept; a model has at most 32

  // `cores` in use for `seconds`. Of a phase that is not known nothing is kept.
  void add(const Phase& phase, double cores, double seconds, MonotonicTime time);

  // The 99 % quantile by time, at most 5 % above the true one and never below it. 0 before the
  // first sample of the phase, and where it is below a hundredth of a core.
  double p99_cores(const Phase& phase) const;
  double samples(const Phase& phase) const;

 private:
  std::map<int, DecayingHistogram> cores_;  // by phase index
};

}  // namespace cgphase
