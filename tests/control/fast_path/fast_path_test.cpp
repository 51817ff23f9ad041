#include "control/fast_path/fast_path.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <filesystem>

#include "control/lease/restore.h"
#include "control/writer/kernel_limit_writer.h"
#include "tests/cgroupfs/fake_cgroup.h"
#include "tests/control/fast_path/watched.h"

using namespace cgphase;
using std::chrono::milliseconds;

TEST_CASE("without pressure triggers the fast path checks every 150 ms") {
  Watched guarded;
  guarded.lower(Knob::memory_max, "536870912");
  CHECK(guarded.look() == kFastPathRiskInterval);
}

TEST_CASE("without signal sources a lowering is checked at once, even right after a check") {
  Watched guarded({.containers = 4, .inotify = false});
  guarded.lower(Knob::memory_max, "536870912");
  release_lease(*guarded.leases, guarded.box.id(), Knob::memory_max);
  guarded.box.put("memory.max", "1073741824\n");
  CHECK(guarded.look() == kFastPathQuietInterval);
  guarded.box.put("memory.current", "520000000\n");
  guarded.box.put("memory.stat", "anon 500000000\nfile 0\nkernel 0\n");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.look(milliseconds(1));
  CHECK(guarded.box.get("memory.max") == "1073741824");
}

TEST_CASE("a container that is not due is not checked") {
  Watched guarded({.containers = 4, .inotify = false});
  guarded.lower(Knob::memory_max, "536870912");
  guarded.look();
  guarded.box.put("memory.events", "high 0\nmax 1\noom 0\n");
  CHECK(guarded.look(milliseconds(149)) == milliseconds(1));
  CHECK(guarded.box.get("memory.max") == "536870912");
  guarded.look(milliseconds(1));
  CHECK(guarded.box.get("memory.max") == "1073741824");
}

TEST_CASE("the fast path restores both memory limits when need comes close") {
  Watched guarded;
  guarded.lower(Knob::memory_high, "419430400");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.box.put("memory.current", "520000000\n");
  guarded.box.put("memory.stat", "anon 500000000\nfile 0\nkernel 0\n");
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "1073741824");
  CHECK(guarded.box.get("memory.high") == "max");
  const auto actions = guarded.fast_path->take_actions();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].knob == Knob::memory_max);
  CHECK(actions[0].old_value.view() == "536870912");
  CHECK(actions[0].new_value.view() == "1073741824");
  CHECK(actions[0].reason == Reason::headroom);
  CHECK(actions[0].written);
}

namespace {

// Reports one program start for each container id that it is given.
class ToldStarts final : public ProgramStarts {
 public:
  void start(std::uint64_t container) {
    container_ = container;
    REQUIRE(::eventfd_write(event_.get(), 1) == 0);
  }
  int fd() const override { return event_.get(); }
  void take(void (*tell)(void*, std::uint64_t), void* listener) override {
    eventfd_t count = 0;
    if (::eventfd_read(event_.get(), &count) == 0) tell(listener, container_);
  }

 private:
  Fd event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::uint64_t container_ = 0;
};

}  // namespace

// rule: MEM-07
TEST_CASE("a starting program finds all originals, however often the container was checked") {
  Watched guarded;
  const auto starts = std::make_shared<ToldStarts>();
  REQUIRE(guarded.fast_path->listen(starts));
  guarded.lower(Knob::memory_high, "419430400");
  guarded.lower(Knob::cpu_max, "20000 100000");
  starts->start(guarded.box.id().inode + 1);
  for (int i = 0; i < 2 * kPromptLooks; ++i) {
    guarded.look(milliseconds(1));
    CHECK(guarded.box.get("memory.high") == "419430400");
  }
  starts->start(guarded.box.id().inode);
  guarded.look(milliseconds(1));
  CHECK(guarded.box.get("memory.high") == "max");
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
  const auto actions = guarded.fast_path->take_actions();
  REQUIRE(actions.size() == 2);
  for (const FastPathAction& action : actions) CHECK(action.reason == Reason::program_started);
}

TEST_CASE("a program that starts in a dropped container changes nothing") {
  Watched guarded;
  const auto starts = std::make_shared<ToldStarts>();
  REQUIRE(guarded.fast_path->listen(starts));
  guarded.lower(Knob::memory_high, "419430400");
  guarded.fast_path->drop(guarded.box.id());
  starts->start(guarded.box.id().inode);
  guarded.look();
  CHECK(guarded.box.get("memory.high") == "419430400");
}

TEST_CASE("a lowering decided before a program start is void, however late the start is reported") {
  Watched guarded;
  const auto starts = std::make_shared<ToldStarts>();
  REQUIRE(guarded.fast_path->listen(starts));
  auto writer = KernelLimitWriter::create({.cgroup_root = guarded.root(),
                                           .leases = guarded.leases.get(),
                                           .fast_path = guarded.fast_path.get(),
                                           .allow_plain_directory = true});
  REQUIRE(writer);
  REQUIRE((*writer)->attach(guarded.box.id(), guarded.box.path(), guarded.box.open()));
  LimitChange change{.id = guarded.box.id(), .path = guarded.box.path(), .reason = "test"};
  change.old_limits = change.new_limits = guarded.box.limits();
  change.new_limits.cpu_max->quota = Microseconds{20'000};
  change.decided = guarded.clock.monotonic_now();
  const auto submit = [&] {
    (*writer)->submit(change);
    pollfd ready{(*writer)->result_fd(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 30'000) == 1);
    return (*writer)->drain_results().at(0);
  };
  starts->start(guarded.box.id().inode);
  guarded.look(milliseconds(1));  // nothing is lowered yet, so nothing is restored
  const LimitResult result = submit();
  CHECK_FALSE(result.written);
  CHECK(result.program_started);
  CHECK_FALSE(result.overtaken);
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
  change.decided = guarded.clock.monotonic_now() + milliseconds(1);
  CHECK(submit().written);
  CHECK(guarded.box.get("cpu.max") == "20000 100000");
}

TEST_CASE("while the fast path writes, its written value has no action yet") {
  Watched guarded;
  guarded.lower(Knob::memory_max, "536870912");
  guarded.box.put("memory.events", "low 0\nhigh 0\nmax 1\noom 0\noom_kill 0\n");
  bool settled_meanwhile = true;
  guarded.fast_path->on_memory_raise([&](CgroupId) {
    settled_meanwhile = guarded.fast_path->settle(std::chrono::milliseconds(2));
  });
  CHECK(guarded.fast_path->settle(std::chrono::milliseconds(0)));
  guarded.look();
  CHECK_FALSE(settled_meanwhile);
  CHECK(guarded.fast_path->settle(std::chrono::milliseconds(0)));
  CHECK(guarded.fast_path->take_actions().size() == 1);
}

TEST_CASE(
    "the fast path restores memory after an event between two checks, the first check included") {
  Watched guarded;
  guarded.lower(Knob::memory_max, "536870912");
  guarded.box.put("memory.events", "low 0\nhigh 0\nmax 1\noom 0\noom_kill 0\n");
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "1073741824");
  CHECK(guarded.fast_path->take_actions().front().reason == Reason::memory_event);
}

TEST_CASE("events of this cgroup alone count if the kernel counts them separately") {
  Watched guarded;
  guarded.box.put("memory.events.local", "max 0\noom 0\n");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.box.put("memory.events", "max 9\noom 9\n");
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "536870912");
}

TEST_CASE("the fast path raises cpu by a fifth, then to the original") {
  Watched guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "120000 100000");
  guarded.throttle(60'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
  CHECK(guarded.fast_path->take_actions().size() == 2);
}

TEST_CASE("a second raise goes to the original even if the files were reopened meanwhile") {
  Watched guarded;
  std::filesystem::remove(guarded.box.directory() + "/memory.current");
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.throttle(30'000);
  guarded.look();
  REQUIRE(guarded.box.get("cpu.max") == "120000 100000");
  guarded.box.put("memory.current", "314572800\n");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.throttle(60'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("a second raise goes to the original even if all limits were original meanwhile") {
  Watched guarded;
  const FakeCgroup other(guarded.root(), "/other");
  const auto raised_to = [&] {
    guarded.lower(Knob::cpu_max, "100000 100000");
    guarded.throttle(0);
    guarded.look();
    guarded.throttle(30'000);
    guarded.look();
    return guarded.box.get("cpu.max");
  };
  const auto back_to_original = [&] {
    guarded.box.put("cpu.max", "200000 100000\n");
    release_lease(*guarded.leases, guarded.box.id(), Knob::cpu_max);
    guarded.fast_path->drop(guarded.box.id());
    guarded.look();
    guarded.fast_path->close_dropped();  // another container has its slot now
    guarded.lower(other, Knob::cpu_max, "150000 100000");
  };
  CHECK(raised_to() == "120000 100000");
  back_to_original();
  CHECK(raised_to() == "200000 100000");
  back_to_original();
  guarded.clock.advance(SafetyConfig{}.cpu_raises_window);
  CHECK(raised_to() == "120000 100000");
}

TEST_CASE("the fast path raises by the configured factor; a reload applies to the next container") {
  Watched guarded({.containers = 4, .safety = {.cpu_raise_factor = 1.5}});
  SafetyConfig reloaded;
  reloaded.cpu_raise_factor = 1.1;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.fast_path->set_safety(reloaded);
  const FakeCgroup later(guarded.root(), "/later");
  guarded.lower(later, Knob::cpu_max, "100000 100000");
  guarded.throttle(30'000);
  later.put("cpu.stat", "usage_usec 1\nthrottled_usec 30000\n");
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "150000 100000");
  CHECK(later.get("cpu.max") == "110000 100000");
}

TEST_CASE("the fast path never raises cpu above the original") {
  Watched guarded;
  guarded.lower(Knob::cpu_max, "190000 100000");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("the fast path restores the burst after the original quota") {
  Watched guarded;
  guarded.box.put("cpu.max.burst", "150000\n");
  guarded.lower(Knob::cpu_max_burst, "100000");
  guarded.lower(Knob::cpu_max, "190000 100000");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max.burst") == "150000");
  const auto actions = guarded.fast_path->take_actions();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].knob == Knob::cpu_max);
  CHECK(actions[1].knob == Knob::cpu_max_burst);
}

TEST_CASE("a value that the fast path wrote is leased and restored like others") {
  Watched guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.throttle(30'000);
  guarded.look();
  REQUIRE(guarded.box.get("cpu.max") == "120000 100000");
  const std::string root = guarded.box.directory().substr(0, guarded.box.directory().rfind('/'));
  CHECK(restore_leases(*guarded.leases, root).restored == 1);
  CHECK(guarded.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("the fast path does not change somebody else's value") {
  Watched guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.box.put("cpu.max", "70000 100000\n");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("cpu.max") == "70000 100000");
  CHECK(guarded.fast_path->take_actions().empty());
}

TEST_CASE("a container whose leases are released is not changed and not at risk") {
  Watched guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  release_lease(*guarded.leases, guarded.box.id(), Knob::cpu_max);
  guarded.throttle(30'000);
  CHECK(guarded.look() == kFastPathQuietInterval);
  CHECK(guarded.box.get("cpu.max") == "100000 100000");
}

TEST_CASE("a memory.high whose lease has ended no longer counts as our limit") {
  Watched guarded;
  guarded.box.put("memory.current", "390000000\n");
  guarded.box.put("memory.stat", "anon 390000000\nfile 0\nkernel 0\n");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.lower(Knob::memory_high, "400000000");
  release_lease(*guarded.leases, guarded.box.id(), Knob::memory_high);
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "536870912");
}

TEST_CASE("a full table rejects the next container until one is dropped") {
  Watched guarded({.containers = 1});
  guarded.lower(Knob::cpu_max, "100000 100000");
  const TemporaryDirectory root;
  const FakeCgroup other(root.path());
  const auto refused = guarded.fast_path->cover(other.id(), other.open().get(), Knob::cpu_max, 1);
  CHECK(refused.error().kind == ErrorKind::invalid);
  guarded.fast_path->drop(guarded.box.id());
  guarded.look();
  CHECK(guarded.fast_path->cover(other.id(), other.open().get(), Knob::cpu_max, 1));
}

TEST_CASE("files that appear after a container was covered are read, with its other limits") {
  Watched guarded;
  const auto without = [&](const char* file) {
    std::filesystem::remove(guarded.box.directory() + "/" + file);
  };
  for (const char* file : {"memory.max", "memory.current", "memory.events"}) without(file);
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.look();
  guarded.box.put("memory.max", "1073741824\n");
  guarded.box.put("memory.current", "314572800\n");
  guarded.box.put("memory.events", "max 0\noom 0\n");
  guarded.lower(Knob::memory_max, "536870912");
  guarded.look();
  guarded.box.put("memory.events", "max 1\noom 0\n");
  guarded.throttle(30'000);
  guarded.look();
  CHECK(guarded.box.get("memory.max") == "1073741824");
  CHECK(guarded.box.get("cpu.max") == "120000 100000");
}

TEST_CASE("a limit that the fast path cannot watch is rejected, and the others stay watched") {
  struct Case {
    Knob knob;
    const char* file;
  };
  for (const Case& blind : {Case{Knob::memory_max, "memory.current"},
                            Case{Knob::memory_max, "memory.events"},
                            Case{Knob::memory_high, "memory.current"},
                            Case{Knob::memory_high, "memory.high"},
                            Case{Knob::cpu_max, "cpu.stat"}}) {
    for (const bool covered_before : {false, true}) {
      Watched guarded;
      std::filesystem::remove(guarded.box.directory() + "/" + blind.file);
      const Knob other = blind.knob == Knob::cpu_max ? Knob::memory_max : Knob::cpu_max;
      const char* lowered = other == Knob::cpu_max ? "100000 100000" : "1048576";
      if (covered_before) guarded.lower(other, lowered);
      const auto refused =
          guarded.fast_path->cover(guarded.box.id(), guarded.box.open().get(), blind.knob, 7);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().kind == ErrorKind::gone);
      CHECK(refused.error().text ==
            std::string(blind.file) + ": the fast path cannot read it; the limit is not lowered");
      if (!covered_before) continue;
      guarded.throttle(30'000);
      guarded.box.put("memory.events", "max 1\noom 0\n");
      guarded.look();
      CHECK(guarded.fast_path->take_actions().size() == 1);
    }
  }
}

TEST_CASE("a removed container causes no action") {
  Watched guarded;
  guarded.lower(Knob::cpu_max, "100000 100000");
  guarded.box.remove();
  guarded.look();
  guarded.look();
  CHECK(guarded.fast_path->action_fd() >= 0);
}

TEST_CASE("actions that are not taken are counted as lost, never overwritten") {
  Watched guarded;
  for (std::size_t i = 0; i < kFastPathActions + 3; ++i) {
    guarded.lower(Knob::memory_max, "536870912");
    guarded.box.put("memory.current", "530000000\n");
    guarded.box.put("memory.stat", "anon 530000000\n");
    guarded.look();
  }
  CHECK(guarded.fast_path->lost_actions() == 3);
  CHECK(guarded.fast_path->take_actions().size() == kFastPathActions);
}

TEST_CASE("the fast path's thread restores a finite memory.high that is below the usage") {
  const SystemClock clock;
  const TemporaryDirectory runtime, root;
  const FakeCgroup box(root.path());
  const auto leases =
      std::move(*LeaseTable::open({.runtime_dir = runtime.path(), .records = 4, .boot_id = "b"}));
  const auto fast_path = std::move(*FastPath::create({.leases = leases.get(), .clock = &clock}));
  const auto lower = [&](Knob knob, const char* from, const char* to) {
    const auto record =
        leases->record(box.id(), box.path(), knob, text_of(from), text_of(to), "test");
    box.put(file_name(knob), std::string(to) + "\n");
    REQUIRE(fast_path->cover(box.id(), box.open().get(), knob, record.value()));
  };
  lower(Knob::memory_high, "209715200", "104857600");
  lower(Knob::memory_max, "1073741824", "536870912");
  box.put("memory.events", "max 1\noom 0\n");
  REQUIRE(fast_path->start());
  std::vector<FastPathAction> actions;
  while (actions.size() < 2) {
    pollfd acted{fast_path->action_fd(), POLLIN, 0};
    REQUIRE(::poll(&acted, 1, 30'000) == 1);
    for (const FastPathAction& action : fast_path->take_actions()) actions.push_back(action);
  }
  fast_path->stop();
  CHECK(actions[0].knob == Knob::memory_max);
  CHECK(actions[1].written);
  CHECK(box.get("memory.max") == "1073741824");
  CHECK(box.get("memory.high") == "209715200");
}

TEST_CASE("the fast path's thread acts by itself, reports it, and stops") {
  const SystemClock clock;
  const TemporaryDirectory runtime, root;
  const FakeCgroup box(root.path());
  const auto leases =
      std::move(*LeaseTable::open({.runtime_dir = runtime.path(), .records = 4, .boot_id = "b"}));
  const auto fast_path = std::move(*FastPath::create({.leases = leases.get(), .clock = &clock}));
  const auto record = leases->record(box.id(), box.path(), Knob::memory_max, text_of("1073741824"),
                                   text_of("536870912"), "test");
  box.put("memory.max", "536870912\n");
  REQUIRE(fast_path->cover(box.id(), box.open().get(), Knob::memory_max, record.value()));
  box.put("memory.events", "max 1\noom 0\n");
  REQUIRE(fast_path->start());
  pollfd acted{fast_path->action_fd(), POLLIN, 0};
  CHECK(::poll(&acted, 1, 30'000) == 1);
  fast_path->stop();
  CHECK(fast_path->take_actions().size() == 1);
  CHECK(box.get("memory.max") == "1073741824");
}
