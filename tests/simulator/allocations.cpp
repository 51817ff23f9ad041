// The operator new of this test program. It is in a separate file; otherwise the compiler would
// inline only one of new and delete.
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
