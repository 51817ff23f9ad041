// Memory of idle containers: when it is reclaimed, what counts as asleep, what waking cost.
#include <doctest/doctest.h>

#include <optional>

#include "core/reclaim.h"
#include "core/sleep.h"
#include "tests/core/core_host.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// One idle container and its ticks of one second.
struct Sleeper {
  IdleSleep sleep;
  Sample previous, sample;
  MonotonicTime now{seconds(100)};

  Sleeper() {
    sample.memory_current = Bytes{100 * kMiB};
    sample.memory_pressure.some.total_usec = 0;
    previous = sample;
  }
  void tick(double cores, bool known = true) {
    now += seconds(1);
    sleep.add(previous, sample, cores, known, now);
    previous = sample;
  }
  void idle(int ticks) {
    for (int i = 0; i < ticks; ++i) tick(0.001);
  }
  void reclaim(std::uint64_t asked_mib, std::uint64_t freed_mib) {
    sleep.ask(Bytes{asked_mib * kMiB}, false);
    sleep.reclaimed();
    sample.memory_current->value -= freed_mib * kMiB;
    tick(0.001);
  }
};

ContainerView idle_view() {
  ContainerView view;
  view.mode = Mode::enforce;
  view.sample.memory.inactive_file_bytes = 300 * kMiB;
  view.sample.memory.active_file_bytes = 100 * kMiB;
  view.sample.memory.anon_bytes = 600 * kMiB;
  return view;
}

Forecast next_in(seconds in) {
  Forecast forecast;
  forecast.next = {{.phase = 1, .probability = 1, .in = in}};
  return forecast;
}

}  // namespace

// rule: MEM-11
TEST_CASE("a container is idle after thirty seconds with little CPU in known phases") {
  Sleeper one;
  one.idle(30);
  CHECK_FALSE(one.sleep.idle(one.now));
  one.idle(1);
  CHECK(one.sleep.idle(one.now));
  one.tick(0.5);
  CHECK_FALSE(one.sleep.idle(one.now));
  one.idle(31);
  CHECK(one.sleep.idle(one.now));
  one.tick(0.001, false);
  CHECK_FALSE(one.sleep.idle(one.now));
}

// rule: MEM-11
TEST_CASE("reclaim stops before the phase usually ends, and where its end is overdue") {
  CHECK_FALSE(ends_soon(std::nullopt));
  CHECK_FALSE(ends_soon(Forecast{}));  // never ended
  CHECK_FALSE(ends_soon(next_in(seconds(31))));
  CHECK(ends_soon(next_in(seconds(30))));
  CHECK(ends_soon(next_in(seconds(0))));
}

// rule: MEM-11
TEST_CASE("a hundredth of what can be reclaimed goes at a time, only for who agrees") {
  const HostCapacity host{.cpu_cores = 2, .memory = Bytes{4 * kGiB}};
  HostCapacity with_swap = host;
  with_swap.swap = Bytes{kGiB};
  const auto bytes = [](const ContainerView& view, const HostCapacity& on) {
    const auto reclaim = idle_memory(view, on);
    return reclaim ? reclaim->bytes.value : 0;
  };
  ContainerView view = idle_view();
  CHECK(bytes(view, host) == 4 * kMiB);
  CHECK(bytes(view, with_swap) == 10 * kMiB);
  view.sample.swap_max = MemoryLimit{Bytes{0}};
  CHECK(bytes(view, with_swap) == 4 * kMiB);
  view.sample.memory.inactive_file_bytes = kMiB / 2;
  view.sample.memory.active_file_bytes = 0;
  CHECK(bytes(view, host) == kMiB / 2);
  view.sample.memory.inactive_file_bytes = 0;
  CHECK(bytes(view, host) == 0);

  const auto after = [&](auto change) {
    ContainerView changed = idle_view();
    change(changed);
    return bytes(changed, host);
  };
  CHECK(after([](auto& v) { v.mode = Mode::advise; }) == 0);
  CHECK(after([](auto& v) { v.inside = true; }) == 0);
  CHECK(after([](auto& v) { v.info.hands_off = "kubelet"; }) == 0);
  CHECK(after([](auto& v) { v.terms.service_class = ServiceClass::critical; }) == 0);
  CHECK(after([](auto& v) { v.terms.sleep = false; }) == 0);
  CHECK(after([](auto& v) { v.terms = {.service_class = ServiceClass::critical, .sleep = true}; }) >
        0);
  CHECK(after([](auto& v) { v.sample.memory_pressure.some.avg10_ratio = 0.001; }) == 0);
  CHECK(after([](auto& v) { v.sample.io_pressure.some.avg60_ratio = 0.01; }) == 0);
}

// rule: MEM-11
TEST_CASE("asleep is what was freed because cgphase asked, until it is charged again") {
  Sleeper one;
  one.idle(31);
  one.reclaim(4, 10);  // the container freed six by itself
  CHECK(one.sleep.asleep().value == 4 * kMiB);
  one.reclaim(4, 1);
  CHECK(one.sleep.asleep().value == 5 * kMiB);
  one.sample.memory_current->value += 2 * kMiB;
  one.tick(0.001);
  CHECK(one.sleep.asleep().value == 3 * kMiB);
  CHECK_FALSE(one.sleep.last_wake().has_value());
}

// rule: MEM-11
TEST_CASE("what a kernel did not reclaim does not count as asleep") {
  Sleeper one;
  one.idle(31);
  one.sleep.ask(Bytes{4 * kMiB}, false);
  one.sample.memory_current->value -= 10 * kMiB;
  one.tick(0.001);
  CHECK(one.sleep.asleep().value == 0);
}

// rule: MEM-11
TEST_CASE("memory that swap does not take is not asked for until the container wakes") {
  Sleeper one;
  one.sample.swap_current = one.previous.swap_current = Bytes{kMiB};
  one.idle(31);
  const auto reclaim = [&](std::uint64_t swapped) {
    one.sleep.ask(Bytes{4 * kMiB}, one.sleep.swap_takes());
    one.sleep.reclaimed();
    one.sample.memory_current->value -= 4 * kMiB;
    one.sample.swap_current->value += swapped;
    one.tick(0.001);
  };
  reclaim(kMiB);
  CHECK(one.sleep.swap_takes());
  reclaim(0);
  CHECK_FALSE(one.sleep.swap_takes());
  reclaim(0);
  CHECK_FALSE(one.sleep.swap_takes());
  one.tick(0.8);
  CHECK(one.sleep.swap_takes());
}

// rule: MEM-11
TEST_CASE("waking takes as long as its tasks wait for memory") {
  Sleeper one;
  one.idle(31);
  one.reclaim(10, 10);
  *one.sample.memory_pressure.some.total_usec += 40'000;
  one.tick(0.8);
  *one.sample.memory_pressure.some.total_usec += 20'000;
  one.tick(0.8);
  one.tick(0.8);  // awake
  *one.sample.memory_pressure.some.total_usec += 500'000;
  one.tick(0.8);
  REQUIRE(one.sleep.last_wake().has_value());
  CHECK(one.sleep.last_wake()->asleep == Bytes{10 * kMiB});
  CHECK(one.sleep.last_wake()->waited == std::chrono::milliseconds(60));
  CHECK(one.sleep.asleep().value == 0);
  // Without PSI nothing is known, and little that was asleep is no sleep.
  Sleeper silent;
  silent.sample.memory_pressure = silent.previous.memory_pressure = {};
  silent.idle(31);
  silent.reclaim(10, 10);
  silent.tick(0.8);
  CHECK(silent.sleep.last_wake().has_value());
  CHECK_FALSE(silent.sleep.last_wake()->waited.has_value());
  Sleeper short_nap;
  short_nap.idle(31);
  short_nap.tick(0.8);
  CHECK_FALSE(short_nap.sleep.last_wake().has_value());
}

// rule: MEM-11
TEST_CASE("a frozen container does not sleep, and an idle one waits while the host is short") {
  for (const bool frozen : {true, false}) {
    Host host;
    host.core.admit(kId, {.mode = Mode::enforce});
    host.cache(64 * kMiB);
    if (frozen) host.freeze();
    for (int tick = 0; tick < 60; ++tick) {
      if (!frozen) host.next.outside.memory_now_bytes = 4e9;
      host.step(0.001);
      CHECK(host.last.reclaims.empty());
    }
    CHECK(host.core.find(kId)->phase.known() != frozen);
  }
}

// rule: MEM-11
TEST_CASE("the core reclaims from an idle container every six seconds") {
  Host host;
  host.core.admit(kId, {.mode = Mode::enforce});
  host.cache(64 * kMiB);
  int reclaims = 0;
  for (int tick = 0; tick < 100; ++tick) {
    host.step(0.001);
    for (const CacheReclaim& reclaim : host.last.reclaims) {
      CHECK(reclaim.bytes == Bytes{kMiB});
      ++reclaims;
    }
  }
  CHECK(reclaims >= 9);
  CHECK(reclaims <= 13);
  host.step(0.7);
  for (int tick = 0; tick < 25; ++tick) {
    host.step(0.001);
    CHECK(host.last.reclaims.empty());
  }
}
