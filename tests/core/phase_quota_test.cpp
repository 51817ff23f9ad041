// Quotas that follow phases: set when a phase is recognised, raised before the next one is due.
#include <doctest/doctest.h>

#include <optional>

#include "policy/learned_state.h"
#include "tests/core/core_host.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr int kVisit = 60, kCycles = 6;  // ticks per phase, visits of each phase
constexpr double kIdle = 0.05, kBusy = 0.75;

CoreConfig quotas() {
  CoreConfig config;
  config.policy = "phase";
  config.cpu_lever = CpuLever::quota;
  return config;
}

LearnedState earlier_runs(int count) {
  LearnedState learned;
  for (int run = 0; run < count; ++run) {
    Host host(quotas());
    for (int tick = 0; tick < 2 * kVisit * kCycles; ++tick)
      host.step(tick / kVisit % 2 == 0 ? kIdle : kBusy);
    learned = merge_learned(learned, host.core.learned(kId));
  }
  return learned;
}

}  // namespace

// rule: CPU-07
TEST_CASE("a proved quota comes soon after its phase, and goes before the next one") {
  Host host(quotas());
  host.core.admit(kId, {.mode = Mode::enforce, .prior = earlier_runs(3)});
  int followed = 0;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    std::optional<int> set;
    for (int tick = 0; tick < kVisit; ++tick) {
      host.step(kIdle);
      if (!set && host.limits().cpu_cores()->value < 0.5) set = tick;
    }
    // The last sample of the phase is in; the first of the next one is not.
    CHECK(host.limits().cpu_cores()->value > kBusy);
    if (set && *set <= 30) ++followed;
    for (int tick = 0; tick < kVisit; ++tick) {
      host.step(kBusy);
      CHECK(host.limits().cpu_cores()->value > kBusy);
    }
  }
  CHECK(followed >= kCycles - 1);  // the first visit waits until the container has settled
}
