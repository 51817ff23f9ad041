// Tests what the core remembers of earlier runs and of failures in them.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "tests/core/core_host.h"

using namespace cgphase;
using namespace cgphase::test;

TEST_CASE("after an OOM the memory floor applies to the next container of the image only") {
  Host host;
  host.core.admit(kId, {.mode = Mode::enforce});
  for (int tick = 0; tick < 200 && !host.lowered_memory(); ++tick) host.step(0.1);
  REQUIRE(host.lowered_memory());
  (void)host.core.drain_safety_news();  // the run's peak
  host.out_of_memory();
  host.step(0.1);
  CHECK(host.core.drain_safety_news());
  CHECK_FALSE(host.core.drain_safety_news());
  const double floor = host.core.safety_memory().ooms.floor_bytes("t", WallTime(seconds(0)));
  CHECK(floor == doctest::Approx(1.2 * kGiB));  // of memory.max, which was reached
  host.vanish();
  for (const bool same : {true, false}) {
    ContainerInfo next = container();
    next.name = "next";
    next.image = same ? "t" : "another";
    host.core.admit(kId, {.mode = Mode::enforce});
    host.appear(next);
    for (int tick = 0; tick < 400; ++tick) host.step(0.1);
    const auto reached = static_cast<double>(host.limits().memory_bytes()->value);
    CHECK((reached >= std::min<double>(floor, kGiB)) == same);
    CHECK((host.core.find(kId)->memory_blocked_by == Verdict::oom_remembered) == same);
    host.vanish();
  }
}

TEST_CASE("a container that had an OOM under our limit is not lowered for a day after it returns") {
  Host host;
  host.core.admit(kId, {.mode = Mode::enforce});
  for (int tick = 0; tick < 200 && !host.lowered_memory(); ++tick) host.step(0.1);
  REQUIRE(host.lowered_memory());
  host.out_of_memory();
  host.step(0.1);
  host.vanish();
  // Without the floor of the OOM, so that only the quarantine can block.
  SafetyMemory memory = host.core.safety_memory();
  memory.ooms = {};
  host.core.set_safety_memory(memory);
  for (const bool same : {false, true}) {
    ContainerInfo next = container();
    if (!same) next.name = "another";
    host.core.admit(kId, {.mode = Mode::enforce});
    host.appear(next);
    for (int tick = 0; tick < 400; ++tick) host.step(0.1);
    CHECK(host.lowered_memory() != same);
    CHECK((host.core.find(kId)->memory_blocked_by == Verdict::quarantined) == same);
    CHECK(host.core.find(kId)->cpu_blocked_by != Verdict::quarantined);
    host.vanish();
  }
  // The same name once more, a day later.
  host.core.admit(kId, {.mode = Mode::enforce});
  host.appear(container());
  host.step(0.1, seconds(24 * 3600));
  for (int tick = 0; tick < 400; ++tick) host.step(0.1);
  CHECK(host.lowered_memory());
}

// rule: MEM-08
TEST_CASE("after a restart of the daemon memory is not lowered below the run's earlier peak") {
  const auto lowest_of = [](bool saved, std::optional<Bytes> memory_peak) {
    CoreConfig config = Host::quick();
    config.policy = "phase";
    config.safety.start_up = config.safety.settle = seconds(0);
    Host host(config);
    SafetyMemory memory;
    if (saved) memory.runs.keep(kId, "t", 800.0 * kMiB);
    host.core.set_safety_memory(memory);
    host.memory_peak(memory_peak);
    host.core.admit(kId, {.mode = Mode::enforce});
    std::uint64_t lowest = kGiB;
    for (int tick = 0; tick < 400; ++tick) {
      host.step(0.1);
      lowest = std::min(lowest, host.limits().memory_bytes()->value);
    }
    return lowest;
  };
  CHECK(lowest_of(false, std::nullopt) < 600 * kMiB);
  CHECK(lowest_of(true, std::nullopt) >= 800 * kMiB);
  CHECK(lowest_of(false, Bytes{800 * kMiB}) >= 800 * kMiB);
  // The saved value is need; memory.peak includes cache.
  CHECK(lowest_of(true, Bytes{1000 * kMiB}) < 1000 * kMiB);
}

// rule: MEM-08
TEST_CASE("only the peaks of managed runs are saved for the next daemon") {
  for (const Mode mode : {Mode::observe, Mode::advise, Mode::enforce}) {
    Host host;
    host.core.admit(kId, {.mode = mode});
    for (int tick = 0; tick < 70; ++tick) host.step(0.1);
    const bool managed = mode != Mode::observe;
    CHECK(host.core.drain_safety_news() == managed);
    CHECK(host.core.safety_memory().runs.peak_bytes(kId, "t").has_value() == managed);
    host.vanish();
    for (int tick = 0; tick < 70; ++tick) host.step_alone();
    CHECK(host.core.safety_memory().runs.size() == 0);
  }
}
