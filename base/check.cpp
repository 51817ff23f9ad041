#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace cgphase {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "cgphase: internal error: %s does not hold at %s:%d\n", condition, file,
               line);
  std::abort();
}

}  // namespace cgphase
