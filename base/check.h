// CHECK is for our own bugs, on in every build: it prints where and ends the process, whose
// limits the dead-man companion then restores.
#pragma once

namespace cgphase {
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;
}

#define CHECK_INVARIANT(condition)                                         \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::cgphase::check_failed(#condition, __FILE__, __LINE__);             \
  } while (false)
