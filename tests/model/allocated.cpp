#include "tests/model/allocated.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live{0}, most{0};

void* counted(std::size_t size) noexcept {
  void* const memory = std::malloc(size > 0 ? size : 1);
  const std::size_t now = live += ::malloc_usable_size(memory);
  std::size_t highest = most;
  while (now > highest && !most.compare_exchange_weak(highest, now)) {
  }
  return memory;
}

void forget(void* memory) {
  if (memory != nullptr) live -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

// Aligned versions are not replaced, because no reader allocates with an alignment.
void* operator new(std::size_t size) {
  if (void* const memory = counted(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { forget(memory); }
void operator delete(void* memory, std::size_t) noexcept { forget(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { forget(memory); }

namespace cgphase::test {

PeakAllocation::PeakAllocation() : before_(live) { most = before_; }

std::size_t PeakAllocation::bytes() const { return most - before_; }

}  // namespace cgphase::test
