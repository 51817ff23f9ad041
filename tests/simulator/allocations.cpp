// The allocations of this test program. In a file of its own, or the compiler sees through one of
// the pair and not the other.
#include <cstdlib>
#include <new>

#include "tests/simulator/system_calls.h"

void* operator new(std::size_t size) {
  cgphase::simulator::tell_allocation();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
