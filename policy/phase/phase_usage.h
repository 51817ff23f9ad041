// CPU use of one container in each of its phases. The floor of its quota is computed from it.
#pragma once

#include <cstddef>
#include <map>

#include "base/clock.h"
#include "model/phase.h"
#include "policy/phase/histogram.h"

namespace cgphase {

class PhaseUsage {
 public:
  static constexpr std::size_t kPhases = 33;  // further phases are ignored; a model has at most 32

  // Adds `cores` used for `seconds`. Ignored if the phase is unknown.
  void add(const Phase& phase, double cores, double seconds, MonotonicTime time);

  // The 99 % quantile by time. It is never below the true one and at most 5 % above it. 0 before
  // the first sample of the phase, and if it is below a hundredth of a core.
  double p99_cores(const Phase& phase) const;
  double samples(const Phase& phase) const;

 private:
  std::map<int, DecayingHistogram> cores_;  // by phase index
};

}  // namespace cgphase
