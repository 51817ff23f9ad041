#include "policy/pin.h"

#include "policy/policy.h"

namespace cgphase {

Recommendation Recommendation::pinned(const Pin& pin, double samples, double peak_bytes) const {
  Recommendation recommendation = *this;
  if (pin.cpu) {
    recommendation.cpu = pin.cpu;
    recommendation.cpu_sample_count = samples;
    recommendation.cpu_pinned = true;
  }
  if (pin.memory) {
    recommendation.memory = pin.memory;
    recommendation.memory_sample_count = samples;
    recommendation.memory_pinned = true;
    recommendation.memory_peak_bytes = peak_bytes;
  }
  return recommendation;
}

}  // namespace cgphase
