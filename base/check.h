// CHECK_INVARIANT catches bugs of cgphase itself, in every build. It prints the place and ends the
// process. The companion process then restores the limits.
#pragma once

namespace cgphase {
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;
}

#define CHECK_INVARIANT(condition)                                         \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::cgphase::check_failed(#condition, __FILE__, __LINE__);             \
  } while (false)
