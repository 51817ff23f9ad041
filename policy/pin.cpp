#include "policy/pin.h"

#include "policy/policy.h"

namespace cgphase {

Allocation Allocation::pinned(const Pin& pin, double samples, double peak_bytes) const {
  Allocation wish = *this;
  if (pin.cpu) {
    wish.cpu = pin.cpu;
    wish.cpu_sample_count = samples;
    wish.cpu_pinned = true;
  }
  if (pin.memory) {
    wish.memory = pin.memory;
    wish.memory_sample_count = samples;
    wish.memory_pinned = true;
    wish.memory_peak_bytes = peak_bytes;
  }
  return wish;
}

}  // namespace cgphase
