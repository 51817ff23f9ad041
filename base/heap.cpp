#include "base/heap.h"

#include <malloc.h>

namespace cgphase {
namespace {

// The thresholds exceed what one tick of many containers allocates and frees. That memory must not
// be faulted in again at each tick.
constexpr int kMappedFromBytes = 4 << 20;
constexpr int kKeptFreeBytes = 4 << 20;

}  // namespace

void keep_heap_small() {
  ::mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptFreeBytes);
}

void give_back_heap() { ::malloc_trim(0); }

}  // namespace cgphase
