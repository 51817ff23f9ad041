// Measures the memory that a part of a test allocates, counted in operator new.
#pragma once

#include <cstddef>

namespace cgphase::test {

// The peak of allocated memory since construction, above the amount at construction. Only one may
// exist at a time; other threads are counted too.
class PeakAllocation {
 public:
  PeakAllocation();
  std::size_t bytes() const;

 private:
  std::size_t before_;
};

}  // namespace cgphase::test
