// How much memory a piece of a test holds at once, counted at operator new.
#pragma once

#include <cstddef>

namespace cgphase::test {

// The most that was allocated and not yet freed since it was made, beyond what there was before.
// One at a time; other threads count too.
class PeakAllocation {
 public:
  PeakAllocation();
  std::size_t bytes() const;

 private:
  std::size_t before_;
};

}  // namespace cgphase::test
