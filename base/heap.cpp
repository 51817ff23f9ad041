#include "base/heap.h"

#include <malloc.h>

namespace cgphase {
namespace {

// Above what a tick of many containers takes and frees, which is not to be faulted in each time.
constexpr int kMappedFromBytes = 4 << 20;
constexpr int kKeptFreeBytes = 4 << 20;

}  // namespace

void keep_heap_small() {
  ::mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptFreeBytes);
}

void give_back_heap() { ::malloc_trim(0); }

}  // namespace cgphase
