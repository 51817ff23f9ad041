#include "policy/safety/known_sources.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;

TEST_CASE("a source that existed is missed, one that never existed is not") {
  Sample whole = SafetyWorld().sample;
  whole.memory_current = whole.swap_current = Bytes{1};
  whole.limits.memory_high = MemoryLimit{};
  const std::function<void(Sample&)> stops[] = {
      [](Sample& s) { s.cpu = {}; },
      [](Sample& s) { s.cpu.nr_periods = s.cpu.nr_throttled = s.cpu.throttled_usec = {}; },
      [](Sample& s) { s.memory_current.reset(); },
      [](Sample& s) { s.memory = {}; },
      [](Sample& s) { s.memory_events = {}; },
      [](Sample& s) { s.swap_current.reset(); },
      [](Sample& s) { s.populated = s.frozen = {}; },
      [](Sample& s) { s.cpu_pressure = {}; },
      [](Sample& s) { s.memory_pressure = {}; },
      [](Sample& s) { s.io_pressure = {}; },
      [](Sample& s) { s.limits.cpu_max.reset(); },
      [](Sample& s) { s.limits.cpu_max_burst.reset(); },
      [](Sample& s) { s.limits.memory_max.reset(); },
      [](Sample& s) { s.limits.memory_high.reset(); },
  };
  for (const auto& stop : stops) {
    CAPTURE(&stop - stops);
    Sample without = whole;
    stop(without);
    KnownSources seen, never;
    CHECK_FALSE(seen.lost(whole));
    CHECK(seen.lost(without));
    CHECK(seen.lost(without));
    CHECK_FALSE(seen.lost(whole));
    CHECK_FALSE(never.lost(without));
    CHECK_FALSE(never.lost(without));
  }
}

TEST_CASE("a pressure file without averages is a source, and a limit of max is present") {
  Sample whole = SafetyWorld().sample, totals = whole, unlimited = whole;
  totals.cpu_pressure = {};
  totals.cpu_pressure.some.total_usec = 0;
  unlimited.limits.cpu_max->quota.reset();
  unlimited.limits.memory_max->bytes.reset();
  KnownSources sources;
  CHECK_FALSE(sources.lost(whole));
  CHECK_FALSE(sources.lost(totals));
  CHECK_FALSE(sources.lost(unlimited));
}
