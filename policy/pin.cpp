#include "policy/pin.h"

#include "policy/policy.h"

namespace cgphase {

Allocation Allocation::pinned(const Pin& pin, double samples) const {
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
  }
  return wish;
}

}  // namespace cgphase
