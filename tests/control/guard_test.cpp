#include "control/guard.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <filesystem>

#include "control/restore.h"
#include "tests/control/fake_cgroup.h"

using namespace cgphase;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

GuardReading memory_at(milliseconds time, std::uint64_t current, std::uint64_t limit) {
  GuardReading reading;
  reading.time = MonotonicTime(time);
  reading.memory_current = Bytes{current};
  reading.memory_max = MemoryLimit{Bytes{limit}};
  return reading;
}

GuardReading throttled_at(milliseconds time, std::uint64_t usec) {
  GuardReading reading;
  reading.time = MonotonicTime(time);
  reading.throttled_usec = usec;
  return reading;
}

// A container with lowered limits, a guard without a thread, and a clock that stands still.
class Guarded {
 public:
  explicit Guarded(int containers = 4) : box(root_.path()) {
    auto table = LeaseTable::open({.runtime_dir = runtime_.path(), .records = 16, .boot_id = "b"});
    REQUIRE_MESSAGE(table, table.error().text);
    leases = std::move(*table);
    guard = std::move(
        *Guard::create({.leases = leases.get(), .clock = &clock, .containers = containers}));
  }
  void lower(Knob knob, std::string_view to) {
    const KnobText before = text_of(box.get(file_name(knob)));
    const auto record = leases->hold(box.id(), box.path(), knob, before, text_of(to), "test");
    box.put(file_name(knob), std::string(to) + "\n");
    REQUIRE(guard->cover(box.id(), box.open().get(), knob, record.value()));
  }
  milliseconds look(milliseconds later = milliseconds(150)) {
    clock.advance(later);
    return guard->poll_once();
  }
  void throttle(std::uint64_t usec) {
    box.put("cpu.stat", "usage_usec 1\nthrottled_usec " + std::to_string(usec) + "\n");
  }

 private:
  TemporaryDirectory root_, runtime_;

 public:
  FakeCgroup box;
  ManualClock clock;
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<Guard> guard;
};

}  // namespace

TEST_CASE("memory below 90 % of the limit is no risk, above it is") {
  GuardRule rule;
  CHECK_FALSE(rule.step(memory_at(milliseconds(0), 900, 1000)).at_risk);
  CHECK(rule.step(memory_at(milliseconds(500), 901, 1000)).at_risk);
}

TEST_CASE("memory that grows to the limit within two seconds is at risk") {
  GuardRule rule;
  rule.step(memory_at(seconds(0), 500, 1000));
  CHECK_FALSE(rule.needs_need(memory_at(seconds(1), 660, 1000)));
  CHECK(rule.needs_need(memory_at(seconds(1), 670, 1000)));
}

TEST_CASE("cache close to the limit is looked at closely and left alone") {
  GuardRule rule;
  GuardReading reading = memory_at(seconds(0), 990, 1000);
  reading.memory_need = Bytes{300};
  const GuardVerdict verdict = rule.step(reading);
  CHECK(verdict.at_risk);
  CHECK(verdict.memory == MemoryRisk::none);
}

TEST_CASE("need close to the limit asks for the original") {
  GuardRule rule;
  GuardReading reading = memory_at(seconds(0), 990, 1000);
  reading.memory_need = Bytes{901};
  CHECK(rule.step(reading).memory == MemoryRisk::headroom);
}

TEST_CASE("a new max or oom event asks for the original, an old one does not") {
  for (Counter GuardReading::*field : {&GuardReading::max_events, &GuardReading::oom_events}) {
    GuardRule rule;
    GuardReading reading = memory_at(seconds(0), 100, 1000);
    reading.*field = 5;
    CHECK(rule.step(reading).memory == MemoryRisk::none);
    CHECK(rule.step(reading).memory == MemoryRisk::none);
    reading.*field = 6;
    CHECK(rule.step(reading).memory == MemoryRisk::event);
  }
}

TEST_CASE("no limit is never at risk") {
  GuardRule rule;
  GuardReading reading = memory_at(seconds(0), 990, 1000);
  reading.memory_max = MemoryLimit{};
  reading.memory_need = Bytes{990};
  CHECK_FALSE(rule.step(reading).at_risk);
}

TEST_CASE("throttled for 2 % of a second is tolerated, for more is not") {
  GuardRule rule;
  rule.step(throttled_at(milliseconds(0), 1'000));
  CHECK(rule.step(throttled_at(milliseconds(500), 21'000)).cpu == CpuRaise::none);
  CHECK(rule.step(throttled_at(milliseconds(900), 21'001)).cpu == CpuRaise::by_factor);
}

TEST_CASE("throttling is counted within a window, not for ever") {
  GuardRule rule;
  rule.step(throttled_at(milliseconds(0), 0));
  for (int second = 1; second <= 20; ++second) {
    const auto verdict =
        rule.step(throttled_at(seconds(second), static_cast<std::uint64_t>(second) * 15'000));
    CHECK(verdict.cpu == CpuRaise::none);
    CHECK(verdict.at_risk);
  }
}

TEST_CASE("a counter that fell begins a new window") {
  GuardRule rule;
  rule.step(throttled_at(milliseconds(0), 900'000));
  CHECK(rule.step(throttled_at(milliseconds(150), 100)).cpu == CpuRaise::none);
  CHECK(rule.step(throttled_at(milliseconds(300), 30'000)).cpu == CpuRaise::by_factor);
}

TEST_CASE("the second raise within ten minutes goes to the original, a later one does not") {
  for (const bool within : {true, false}) {
    GuardRule rule;
    rule.step(throttled_at(seconds(0), 0));
    CHECK(rule.step(throttled_at(seconds(1), 50'000)).cpu == CpuRaise::by_factor);
    rule.cpu_raised(MonotonicTime(seconds(1)));
    const auto later = seconds(1) + minutes(10) + seconds(within ? 0 : 1);
    CHECK(rule.step(throttled_at(later, 100'000)).cpu ==
          (within ? CpuRaise::to_original : CpuRaise::by_factor));
  }
}

TEST_CASE("the guard looks every 500 ms, and every 150 ms while something is at risk") {
  Guarded guarded;
  guarded.lower(Knob::memory_max, "536870912");
  CHECK(guarded.look() == kGuardQuietInterval);
  guarded.box.put("memory.current", "500000000\n");
  CHECK(guarded.look() == kGuardRiskInterval);
}

TEST_CASE("the guard restores both memory limits when need comes close") {
  Guarded guarded;
  guarded.lower(Knob::memory_high, "419430400");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.box.put("memory.current", "520000000\n");
  guarded.box.put("memory.stat", "anon 500000000\nfile 0\nkernel 0\n");
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "1073741824");
  CHECK(guarded.box.get("memory.high") == "max");
  const auto actions = guarded.guard->take_actions();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].knob == Knob::memory_max);
  CHECK(actions[0].old_value.view() == "536870912");
  CHECK(actions[0].new_value.view() == "1073741824");
  CHECK(actions[0].reason == Reason::headroom);
  CHECK(actions[0].written);
}

TEST_CASE("the guard restores memory after an event between its looks, the first included") {
  Guarded guarded;
  guarded.lower(Knob::memory_max, "536870912");
  guarded.box.put("memory.events", "low 0\nhigh 0\nmax 1\noom 0\noom_kill 0\n");
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "1073741824");
  CHECK(guarded.guard->take_actions().front().reason == Reason::memory_event);
}

TEST_CASE("events of this cgroup alone count where the kernel tells them apart") {
  Guarded guarded;
  guarded.box.put("memory.events.local", "max 0\noom 0\n");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.box.put("memory.events", "max 9\noom 9\n");
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "536870912");
}

TEST_CASE("the guard raises cpu by a fifth, then to the original") {
  Guarded guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "120000 100000");
  guarded.throttle(60'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
  CHECK(guarded.guard->take_actions().size() == 2);
}

TEST_CASE("the guard never raises cpu above the original") {
  Guarded guarded;
  guarded.lower(Knob::cpu_max, "190000 100000");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("the guard puts the burst back after the original quota") {
  Guarded guarded;
  guarded.box.put("cpu.max.burst", "150000\n");
  guarded.lower(Knob::cpu_max_burst, "100000");
  guarded.lower(Knob::cpu_max, "190000 100000");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max.burst") == "150000");
  const auto actions = guarded.guard->take_actions();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].knob == Knob::cpu_max);
  CHECK(actions[1].knob == Knob::cpu_max_burst);
}

TEST_CASE("what the guard wrote is leased and restored like the rest") {
  Guarded guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.throttle(30'000);
  guarded.look();
  REQUIRE(guarded.box.get("cpu.max") == "120000 100000");
  const std::string root = guarded.box.directory().substr(0, guarded.box.directory().rfind('/'));
  CHECK(restore_leases(*guarded.leases, root).restored == 1);
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("the guard leaves somebody else's value alone") {
  Guarded guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.box.put("cpu.max", "70000 100000\n");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "70000 100000");
  CHECK(guarded.guard->take_actions().empty());
}

TEST_CASE("a container whose leases are released is not touched and not at risk") {
  Guarded guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.leases->release(guarded.leases->find(guarded.box.id(), Knob::cpu_max).value());
  guarded.throttle(30'000);
  CHECK(guarded.look() == kGuardQuietInterval);
  CHECK(guarded.box.get("cpu.max") == "100000 100000");
}

TEST_CASE("a full table refuses the next container until one is dropped") {
  Guarded guarded(1);
  guarded.lower(Knob::cpu_max, "100000 100000");
  const TemporaryDirectory root;
  const FakeCgroup other(root.path());
  const auto refused = guarded.guard->cover(other.id(), other.open().get(), Knob::cpu_max, 1);
  CHECK(refused.error().kind == ErrorKind::invalid);
  guarded.guard->drop(guarded.box.id());
  guarded.look();
  CHECK(guarded.guard->cover(other.id(), other.open().get(), Knob::cpu_max, 1));
}

TEST_CASE("a removed container is no accident") {
  Guarded guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.box.remove();
  guarded.look();
  guarded.look();
  CHECK(guarded.guard->action_fd() >= 0);
}

TEST_CASE("actions that nobody takes are counted as lost, never overwritten") {
  Guarded guarded;
  for (std::size_t i = 0; i < kGuardActions + 3; ++i) {
    guarded.lower(Knob::memory_max, "536870912");
    guarded.box.put("memory.current", "530000000\n");
    guarded.box.put("memory.stat", "anon 530000000\n");
    guarded.look();
  }
  CHECK(guarded.guard->lost_actions() == 3);
  CHECK(guarded.guard->take_actions().size() == kGuardActions);
}

TEST_CASE("the guard's thread acts by itself, reports it, and stops") {
  const SystemClock clock;
  const TemporaryDirectory runtime, root;
  const FakeCgroup box(root.path());
  const auto leases =
      std::move(*LeaseTable::open({.runtime_dir = runtime.path(), .records = 4, .boot_id = "b"}));
  const auto guard = std::move(*Guard::create({.leases = leases.get(), .clock = &clock}));
  const auto record = leases->hold(box.id(), box.path(), Knob::memory_max, text_of("1073741824"),
                                   text_of("536870912"), "test");
  box.put("memory.max", "536870912\n");
  REQUIRE(guard->cover(box.id(), box.open().get(), Knob::memory_max, record.value()));
  box.put("memory.events", "max 1\noom 0\n");
  REQUIRE(guard->start());
  pollfd acted{guard->action_fd(), POLLIN, 0};
  CHECK(::poll(&acted, 1, 30'000) == 1);
  guard->stop();
  CHECK(guard->take_actions().size() == 1);
  CHECK(box.get("memory.max") == "1073741824");
}
