// Where tests may run in qemu-user, which has no bpf(2), no seccomp(2) and no file handles: what
// needs these prints a message and is skipped there, and nowhere else.
#pragma once

namespace cgphase::test {

#if defined(__x86_64__)
inline constexpr bool kMayBeEmulated = false;
#else
inline constexpr bool kMayBeEmulated = true;
#endif

}  // namespace cgphase::test
