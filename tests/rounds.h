// How often a test repeats what hangs on chance.
#pragma once

namespace cgphase::test {

// `whole` times, and a tenth of that where sanitizers make each of them many times as long: they
// look for what any of them would show.
constexpr int rounds(int whole) {
#ifdef CGPHASE_SANITIZED
  return whole / 10;
#else
  return whole;
#endif
}

}  // namespace cgphase::test
