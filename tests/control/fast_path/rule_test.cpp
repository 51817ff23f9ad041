#include "control/fast_path/rule.h"

#include <doctest/doctest.h>

using namespace cgphase;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

FastPathReading memory_at(milliseconds time, std::uint64_t current, std::uint64_t limit) {
  FastPathReading reading;
  reading.time = MonotonicTime(time);
  reading.memory_current = Bytes{current};
  reading.memory_max = MemoryLimit{Bytes{limit}};
  return reading;
}

FastPathReading throttled_at(milliseconds time, std::uint64_t usec) {
  FastPathReading reading;
  reading.time = MonotonicTime(time);
  reading.throttled_usec = usec;
  return reading;
}

// Far below memory.max, with `high` events. Reclaim works and there is plenty of cache.
FastPathReading high_at(milliseconds time, std::uint64_t events) {
  FastPathReading reading = memory_at(time, 500, 1000);
  reading.high_events = events;
  reading.memory_need = Bytes{300};
  reading.page_cache = Bytes{200};
  reading.pgscan = events * 100;
  reading.pgsteal = events * 90;
  reading.full_avg10 = 0.0;
  return reading;
}

// The rule's answer to kStallHighEvents events since the first reading. `change` alters the second
// and the third reading.
MemoryRisk after_high_events(void (*change)(FastPathReading&)) {
  FastPathRule rule;
  rule.step(high_at(seconds(0), 1'000));
  FastPathReading some = high_at(seconds(1), 1'001);
  change(some);
  CHECK(rule.step(some).memory == MemoryRisk::none);
  FastPathReading many = high_at(seconds(2), 1'000 + kStallHighEvents);
  change(many);
  return rule.step(many).memory;
}

// A container at its memory.high of 1000, read every half second. PSI counts the delay of its
// tasks.
struct DelayedContainer {
  DelayedContainer() { (void)stalls(milliseconds(0)); }
  MemoryRisk stalls(std::chrono::microseconds delay) {
    time += milliseconds(500);
    total += static_cast<std::uint64_t>(delay.count());
    FastPathReading reading = memory_at(time, current, 10'000);
    reading.memory_high = MemoryLimit{Bytes{1000}};
    reading.stalled_usec = total;
    return rule.step(reading).memory;
  }
  FastPathRule rule;
  milliseconds time{0};
  std::uint64_t total = 0, current = 950;
};

}  // namespace

TEST_CASE("memory below 90 % of the limit is no risk, above it is") {
  FastPathRule rule;
  CHECK_FALSE(rule.step(memory_at(milliseconds(0), 900, 1000)).at_risk);
  CHECK(rule.step(memory_at(milliseconds(500), 901, 1000)).at_risk);
}

TEST_CASE("memory that grows to the limit within two seconds is at risk") {
  FastPathRule rule;
  rule.step(memory_at(seconds(0), 500, 1000));
  CHECK_FALSE(rule.needs_detail(memory_at(seconds(1), 660, 1000)));
  CHECK(rule.needs_detail(memory_at(seconds(1), 670, 1000)));
}

TEST_CASE("cache close to the limit causes a detailed read and no action") {
  FastPathRule rule;
  FastPathReading reading = memory_at(seconds(0), 990, 1000);
  reading.memory_need = Bytes{300};
  const FastPathVerdict verdict = rule.step(reading);
  CHECK(verdict.at_risk);
  CHECK(verdict.memory == MemoryRisk::none);
}

TEST_CASE("need close to the limit asks for the original") {
  FastPathRule rule;
  FastPathReading reading = memory_at(seconds(0), 990, 1000);
  reading.memory_need = Bytes{901};
  CHECK(rule.step(reading).memory == MemoryRisk::headroom);
}

TEST_CASE("a new max or oom event asks for the original, an old one does not") {
  for (Counter FastPathReading::*field :
       {&FastPathReading::max_events, &FastPathReading::oom_events}) {
    FastPathRule rule;
    FastPathReading reading = memory_at(seconds(0), 100, 1000);
    reading.*field = 5;
    CHECK(rule.step(reading).memory == MemoryRisk::none);
    CHECK(rule.step(reading).memory == MemoryRisk::none);
    reading.*field = 6;
    CHECK(rule.step(reading).memory == MemoryRisk::event);
  }
}

TEST_CASE("no limit is never at risk") {
  FastPathRule rule;
  FastPathReading reading = memory_at(seconds(0), 990, 1000);
  reading.memory_max = MemoryLimit{};
  reading.memory_need = Bytes{990};
  CHECK_FALSE(rule.step(reading).at_risk);
}

TEST_CASE("a throttled period is reported even before its time is counted") {
  FastPathRule rule;
  FastPathReading reading = throttled_at(milliseconds(0), 5'000);
  reading.throttled_periods = 3;
  CHECK_FALSE(rule.step(reading).throttled);
  reading.throttled_periods = 4;
  const FastPathVerdict verdict = rule.step(reading);
  CHECK(verdict.throttled);
  CHECK(verdict.at_risk);
  CHECK_FALSE(rule.step(reading).throttled);
  reading.throttled_usec = 5'001;
  CHECK(rule.step(reading).throttled);
}

TEST_CASE("pressure on the CPU asks for more checks once, then only if tasks are throttled") {
  PressureAlert pressure;
  const auto at = [](int ms) { return MonotonicTime(milliseconds(ms)); };
  pressure.step(at(1000), false, true, false);
  CHECK(pressure.in_period(at(1119)));
  CHECK_FALSE(pressure.in_period(at(1120)));
  for (int ms = 1500; ms <= 60'000; ms += 500) {
    pressure.step(at(ms), false, true, false);  // a busy host
    CHECK_FALSE(pressure.in_period(at(ms + 1)));
  }
  pressure.step(at(60'500), false, true, true);
  CHECK(pressure.in_period(at(60'619)));
  pressure.step(at(61'200), false, true, false);  // throttled 700 ms ago
  CHECK_FALSE(pressure.in_period(at(61'201)));
  pressure.step(at(63'200), false, true, false);  // after a quiet time
  CHECK(pressure.in_period(at(63'201)));
}

TEST_CASE("pressure on the CPU asks for a check every 150 ms, each time") {
  PressureAlert pressure;
  const auto at = [](int ms) { return MonotonicTime(milliseconds(ms)); };
  for (int ms = 1000; ms <= 60'000; ms += 500) {
    pressure.step(at(ms), false, true, false);
    CHECK(pressure.alert(at(ms + 599)));
  }
  CHECK_FALSE(pressure.alert(at(60'600)));
}

TEST_CASE("throttling at a quota that is not ours is no risk") {
  FastPathRule rule;
  FastPathReading reading = throttled_at(milliseconds(0), 5'000);
  reading.quota_is_ours = false;
  rule.step(reading);
  reading.throttled_usec = 5'001;
  CHECK_FALSE(rule.step(reading).at_risk);
  reading.quota_is_ours = true;
  reading.throttled_usec = 5'002;
  CHECK(rule.step(reading).at_risk);
}

TEST_CASE("pressure on memory asks for more checks each time, throttling alone for none") {
  PressureAlert pressure;
  const auto at = [](int ms) { return MonotonicTime(milliseconds(ms)); };
  pressure.step(at(1000), false, false, true);
  CHECK_FALSE(pressure.alert(at(1001)));
  for (int ms = 1500; ms <= 5000; ms += 500) {
    pressure.step(at(ms), true, false, false);
    CHECK(pressure.alert(at(ms + 599)));
    CHECK_FALSE(pressure.in_period(at(ms + 1)));
  }
}

TEST_CASE("throttled for 2 % of a second is tolerated, for more is not") {
  FastPathRule rule;
  rule.step(throttled_at(milliseconds(0), 1'000));
  CHECK(rule.step(throttled_at(milliseconds(500), 21'000)).cpu == CpuRaise::none);
  CHECK(rule.step(throttled_at(milliseconds(900), 21'001)).cpu == CpuRaise::by_factor);
}

TEST_CASE("throttling is counted within a window, not forever") {
  FastPathRule rule;
  rule.step(throttled_at(milliseconds(0), 0));
  for (int second = 1; second <= 20; ++second) {
    const auto verdict =
        rule.step(throttled_at(seconds(second), static_cast<std::uint64_t>(second) * 15'000));
    CHECK(verdict.cpu == CpuRaise::none);
    CHECK(verdict.at_risk);
  }
}

TEST_CASE("a counter that fell begins a new window") {
  FastPathRule rule;
  rule.step(throttled_at(milliseconds(0), 900'000));
  CHECK(rule.step(throttled_at(milliseconds(150), 100)).cpu == CpuRaise::none);
  CHECK(rule.step(throttled_at(milliseconds(300), 30'000)).cpu == CpuRaise::by_factor);
}

TEST_CASE("the second raise within ten minutes goes to the original, a later one does not") {
  for (const bool within : {true, false}) {
    FastPathRule rule;
    rule.step(throttled_at(seconds(0), 0));
    CHECK(rule.step(throttled_at(seconds(1), 50'000)).cpu == CpuRaise::by_factor);
    rule.cpu_raised(MonotonicTime(seconds(1)));
    const auto later = seconds(1) + minutes(10) + seconds(within ? 0 : 1);
    CHECK(rule.step(throttled_at(later, 100'000)).cpu ==
          (within ? CpuRaise::to_original : CpuRaise::by_factor));
  }
}

TEST_CASE("growth is not judged over less than 100 ms") {
  FastPathRule rule;
  rule.step(memory_at(milliseconds(0), 500, 1000));
  CHECK_FALSE(rule.needs_detail(memory_at(milliseconds(99), 600, 1000)));
  rule.step(memory_at(milliseconds(99), 600, 1000));
  CHECK(rule.needs_detail(memory_at(milliseconds(100), 600, 1000)));
}

TEST_CASE("our memory.high is a limit like memory.max, and the lower one counts") {
  for (const bool leased : {false, true}) {
    FastPathRule rule;
    FastPathReading reading = memory_at(seconds(0), 600, 1000);
    if (leased) reading.memory_high = MemoryLimit{Bytes{650}};
    reading.memory_need = Bytes{590};
    CHECK(rule.step(reading).memory == (leased ? MemoryRisk::headroom : MemoryRisk::none));
  }
}

TEST_CASE("`high` events with effective reclaim are no stall") {
  CHECK(after_high_events([](FastPathReading&) {}) == MemoryRisk::none);
}

TEST_CASE("`high` events with reclaim that frees less than a tenth of what it scans are a stall") {
  CHECK(after_high_events([](FastPathReading& reading) {
          reading.pgsteal = *reading.pgscan / 10;
        }) == MemoryRisk::none);
  CHECK(after_high_events([](FastPathReading& reading) {
          reading.pgsteal = *reading.pgscan * 3 / 100;
        }) == MemoryRisk::stall);
}

TEST_CASE("`high` events while all tasks are stalled for more than 10 % are a stall") {
  CHECK(after_high_events([](FastPathReading& reading) { reading.full_avg10 = 0.10; }) ==
        MemoryRisk::none);
  FastPathRule rule;
  rule.step(high_at(seconds(0), 0));
  FastPathReading stuck = high_at(seconds(1), kStallHighEvents);
  stuck.full_avg10 = 0.11;
  CHECK(rule.step(stuck).memory == MemoryRisk::stall);
}

TEST_CASE("`high` events with less than 2 % of cache left to reclaim are a stall") {
  CHECK(after_high_events([](FastPathReading& reading) { reading.page_cache = Bytes{10}; }) ==
        MemoryRisk::none);
  CHECK(after_high_events([](FastPathReading& reading) { reading.page_cache = Bytes{9}; }) ==
        MemoryRisk::stall);
}

TEST_CASE("a single `high` event is a stall if the kernel reports a stall within five seconds") {
  for (const int seconds_later : {5, 6}) {
    FastPathRule rule;
    rule.step(high_at(seconds(0), 0));
    CHECK(rule.step(high_at(seconds(1), 1)).memory == MemoryRisk::none);
    FastPathReading reported = high_at(seconds(1 + seconds_later), 1);
    reported.full_stall = true;
    CHECK(rule.step(reported).memory ==
          (seconds_later == 5 ? MemoryRisk::stall : MemoryRisk::none));
  }
}

TEST_CASE("`high` events without details are no stall: absent is not zero") {
  CHECK(after_high_events([](FastPathReading& reading) {
          reading.page_cache.reset();
          reading.pgscan.reset();
          reading.full_avg10.reset();
        }) == MemoryRisk::none);
}

TEST_CASE("too few `high` events are no stall, and rare ones never add up to one") {
  FastPathRule rule;
  rule.step(high_at(seconds(0), 0));
  for (std::uint64_t i = 1; i <= 4 * kStallHighEvents; ++i) {
    FastPathReading reading = high_at(seconds(i), i);
    reading.page_cache = Bytes{0};
    CHECK(rule.step(reading).memory == MemoryRisk::none);
  }
}

// rule: MEM-05
TEST_CASE("delay by memory.high above its bound is a stall") {
  DelayedContainer container;
  CHECK(container.stalls(milliseconds(50)) == MemoryRisk::none);
  CHECK(container.stalls(milliseconds(6)) == MemoryRisk::stall);  // 2.5 ms of the 50 had drained
}

TEST_CASE("delay within its bound is no stall") {
  DelayedContainer container;
  std::chrono::nanoseconds most{0};
  for (int i = 0; i < 2000; ++i) CHECK(container.stalls(milliseconds(2)) == MemoryRisk::none);
  // Never more than 100 ms in ten seconds: after a burst only the part that drained.
  DelayedContainer burst;
  REQUIRE(burst.stalls(milliseconds(50)) == MemoryRisk::none);
  for (int i = 0; i < 20; ++i)
    if (burst.stalls(milliseconds(2)) == MemoryRisk::none) most += milliseconds(2);
  CHECK(milliseconds(50) + most <= milliseconds(100));
}

TEST_CASE("a stall far from memory.high does not count as our delay") {
  DelayedContainer container;
  container.current = 500;
  CHECK(container.stalls(seconds(1)) == MemoryRisk::none);
}

TEST_CASE("without PSI the time above memory.high is the delay") {
  FastPathRule rule;
  const auto at = [](int ms, std::uint64_t current) {
    FastPathReading reading = memory_at(milliseconds(ms), current, 10'000);
    reading.memory_high = MemoryLimit{Bytes{1000}};
    return reading;
  };
  rule.step(at(0, 1010));
  CHECK(rule.step(at(500, 1010)).memory == MemoryRisk::none);  // 1 % above: the kernel's batches
  rule.step(at(600, 1011));
  CHECK(rule.step(at(640, 1011)).memory == MemoryRisk::none);
  CHECK(rule.step(at(670, 1011)).memory == MemoryRisk::stall);
}

TEST_CASE("`high` events keep a container at risk, and its details are read") {
  FastPathRule rule;
  rule.step(high_at(seconds(0), 7));
  CHECK_FALSE(rule.needs_detail(high_at(seconds(1), 7)));
  CHECK(rule.needs_detail(high_at(seconds(1), 8)));
  CHECK(rule.step(high_at(seconds(1), 8)).at_risk);
}

TEST_CASE("a stall that the kernel reports asks for the original only close to the limit") {
  for (const std::uint64_t current : {900, 901}) {
    FastPathRule rule;
    FastPathReading reading = memory_at(seconds(0), current, 1000);
    reading.full_stall = true;
    CHECK(rule.step(reading).memory ==
          (current > 900 ? MemoryRisk::pressure : MemoryRisk::none));
  }
}

TEST_CASE("the end of the last process and the start of the first one are a restart") {
  FastPathRule rule;
  const auto populated_at = [&rule](int second, std::optional<bool> populated) {
    FastPathReading reading = memory_at(seconds(second), 100, 1000);
    reading.populated = populated;
    return rule.step(reading).restarted;
  };
  CHECK_FALSE(populated_at(0, true));
  CHECK_FALSE(populated_at(1, true));
  CHECK_FALSE(populated_at(2, std::nullopt));
  CHECK_FALSE(populated_at(3, true));
  CHECK(populated_at(4, false));
  CHECK(populated_at(5, true));
  CHECK_FALSE(populated_at(6, true));
}

TEST_CASE("eight checks out of turn are allowed at once, then twenty a second") {
  LookBudget budget;
  MonotonicTime now(seconds(10));
  for (int i = 0; i < kPromptLooks; ++i) CHECK(budget.take(now));
  CHECK_FALSE(budget.take(now));
  CHECK(budget.next() == now + kPromptLookPace);
  CHECK_FALSE(budget.take(now + kPromptLookPace - std::chrono::nanoseconds(1)));
  int taken = 0;
  for (int ms = 1; ms <= 1000; ++ms) taken += budget.take(now + milliseconds(ms)) ? 1 : 0;
  CHECK(taken == 20);
}

TEST_CASE("the fast path uses the numbers of the safety rules") {
  SafetyConfig safety;
  const auto rule = [&safety] { return FastPathRule(FastPathNumbers(safety)); };
  const auto close = [&] { return rule().step(memory_at(seconds(0), 850, 1000)).at_risk; };
  CHECK_FALSE(close());
  safety.at_risk_ratio = 0.8;
  CHECK(close());
  const auto grows = [&] {
    FastPathRule one = rule();
    one.step(memory_at(seconds(0), 500, 1000));
    return one.needs_detail(memory_at(seconds(1), 640, 1000));
  };
  CHECK_FALSE(grows());
  safety.at_risk_growth = seconds(3);
  CHECK(grows());
  const auto throttled = [&](seconds later) {
    FastPathRule one = rule();
    one.cpu_raised(MonotonicTime(seconds(1)));
    one.step(throttled_at(seconds(1) + later, 0));
    return one.step(throttled_at(seconds(1) + later, 25'000)).cpu;
  };
  CHECK(throttled(seconds(60)) == CpuRaise::to_original);
  safety.cpu_raises_window = seconds(59);
  CHECK(throttled(seconds(60)) == CpuRaise::by_factor);
  safety.throttled_ratio = 0.03;
  CHECK(throttled(seconds(60)) == CpuRaise::none);
  const auto stalls = [&] {
    FastPathRule one = rule();
    one.step(high_at(seconds(0), 0));
    FastPathReading stuck = high_at(seconds(1), kStallHighEvents);
    stuck.full_avg10 = 0.06;
    return one.step(stuck).memory;
  };
  CHECK(stalls() == MemoryRisk::none);
  safety.stall_full_avg10 = 0.05;
  CHECK(stalls() == MemoryRisk::stall);
}
