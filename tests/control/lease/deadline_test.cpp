// A lease with a deadline ends then, whoever still works: the fast path, or the companion.
#include <doctest/doctest.h>
#include <poll.h>

#include "control/lease/companion.h"
#include "control/lease/deadline_watch.h"
#include "control/writer/kernel_limit_writer.h"
#include "tests/control/fast_path/watched.h"

using namespace cgphase;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct Frozen : Watched {
  // By cgphase, until `longest` from now.
  void freeze(milliseconds longest) {
    deadline = clock.monotonic_now() + longest;
    const auto record = leases->record(box.id(), box.path(), Knob::cgroup_freeze, text_of("0"),
                                       text_of("1"), "memory_short #1", deadline);
    box.put("cgroup.freeze", "1\n");
    REQUIRE(fast_path->cover(box.id(), box.open().get(), Knob::cgroup_freeze, record.value()));
  }
  bool frozen() const { return box.get("cgroup.freeze") == "1"; }
  RestoreReport check(DeadlineWatch& watch, MonotonicTime now) {
    return watch.check(*leases, root(), now);
  }
  MonotonicTime deadline;
};

}  // namespace

// rule: S-03
TEST_CASE("a lease has the deadline of its newest change") {
  Frozen one;
  CHECK(one.leases->deadlines() == 0);
  one.lower(Knob::cpu_max, "50000 100000");
  CHECK(one.leases->deadlines() == 0);
  one.freeze(seconds(30));
  CHECK(one.leases->deadlines() == 1);
  const int record = one.leases->find(one.box.id(), Knob::cgroup_freeze).value();
  const LeaseValues values = one.leases->read(record)->values;
  CHECK(values.deadline == one.deadline);
  CHECK_FALSE(values.overdue(one.deadline - milliseconds(1)));
  CHECK(values.overdue(one.deadline));
  CHECK(one.leases->read_values(record, one.box.id(), Knob::cgroup_freeze)->deadline ==
        one.deadline);
  // A thaw may fail, so the deadline stays until the lease ends.
  REQUIRE(one.leases->record(one.box.id(), one.box.path(), Knob::cgroup_freeze, text_of("1"),
                             text_of("0"), "memory_fits #2"));
  CHECK(one.leases->read(record)->values.deadline == one.deadline);
}

// rule: BUDGET-08
TEST_CASE("the fast path thaws at the deadline, not before, and reports it") {
  Frozen one;
  one.freeze(milliseconds(1300));
  milliseconds passed{0};
  while (one.frozen() && passed < seconds(5)) {
    const milliseconds wait = one.look(milliseconds(0));
    if (!one.frozen()) break;
    REQUIRE(wait.count() > 0);
    one.clock.advance(wait);
    passed += wait;
  }
  CHECK(passed == milliseconds(1300));
  const auto actions = one.fast_path->take_actions();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].knob == Knob::cgroup_freeze);
  CHECK(actions[0].reason == Reason::freeze_over);
  CHECK(actions[0].new_value.view() == "0");
  CHECK(actions[0].written);
}

// rule: BUDGET-08
TEST_CASE("the fast path ends no freeze for memory or throttling, and lowers nothing") {
  Frozen one;
  one.freeze(seconds(30));
  one.box.put("memory.events", "low 0\nhigh 9\nmax 9\noom 9\noom_kill 0\n");
  one.throttle(10'000'000);
  for (int i = 0; i < 20; ++i) one.look();
  CHECK(one.frozen());
  CHECK(one.fast_path->take_actions().empty());
}

// rule: BUDGET-08
TEST_CASE("the companion thaws after the deadline although the daemon lives") {
  Frozen one;
  DeadlineWatch watch;
  CHECK(one.check(watch, one.clock.monotonic_now()).restored == 0);
  CHECK_FALSE(watch.any());
  one.lower(Knob::cpu_max, "50000 100000");
  one.freeze(seconds(30));
  CHECK(one.check(watch, one.deadline).restored == 0);
  CHECK(watch.any());
  CHECK(one.frozen());
  CHECK(one.check(watch, one.deadline + kWatchInterval).restored == 1);
  CHECK_FALSE(one.frozen());
  CHECK_FALSE(watch.any());
  CHECK(one.box.get("cpu.max") == "50000 100000");
  CHECK_FALSE(one.leases->revoked());
  // The next freeze is found, too.
  one.freeze(seconds(30));
  CHECK(one.check(watch, one.clock.monotonic_now()).restored == 0);
  CHECK(watch.any());
  CHECK(one.frozen());
}

// rule: BUDGET-08
TEST_CASE("a thaw that fails is tried again, and somebody else's choice stays") {
  Frozen one;
  DeadlineWatch watch;
  one.freeze(seconds(30));
  const std::string file = one.box.directory() + "/cgroup.freeze";
  one.box.put("cgroup.freeze", "7\n");
  CHECK(one.check(watch, one.deadline + seconds(1)).foreign == 1);
  CHECK(one.box.get("cgroup.freeze") == "7");
  CHECK_FALSE(watch.any());
  one.freeze(seconds(30));
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/nowhere", file);
  CHECK(one.check(watch, one.deadline + seconds(1)).failures.size() == 1);
  CHECK(watch.any());
  std::filesystem::remove(file);
  one.box.put("cgroup.freeze", "1\n");
  CHECK(one.check(watch, one.deadline + seconds(2)).restored == 1);
}

namespace {

// With the real writer, whose clock is the kernel's.
struct Freezing {
  Freezing() {
    leases = LeaseTable::open({.runtime_dir = runtime.path(), .records = 16, .boot_id = "b"})
                 .value();
    fast_path = FastPath::create({.leases = leases.get(), .clock = &clock, .containers = 4})
                    .value();
    writer = KernelLimitWriter::create({.cgroup_root = root.path(), .leases = leases.get(),
                                        .fast_path = fast_path.get(),
                                        .allow_plain_directory = true})
                 .value();
    REQUIRE(writer->attach(box.id(), box.path(), box.open()));
  }
  LimitResult set(bool frozen, std::optional<MonotonicTime> deadline) {
    LimitChange change{.decision_id = 1, .id = box.id(), .path = box.path(),
                       .old_limits = box.limits(), .new_limits = box.limits(),
                       .raise = !frozen, .reason = "memory_short #1", .deadline = deadline};
    change.new_limits.frozen = frozen;
    writer->submit(change);
    pollfd ready{writer->result_fd(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 30'000) == 1);
    return writer->drain_results().at(0);
  }
  std::string now() const { return box.get("cgroup.freeze"); }

  TemporaryDirectory root, runtime;
  FakeCgroup box{root.path()};
  SystemClock clock;
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<FastPath> fast_path;
  std::unique_ptr<KernelLimitWriter> writer;
};

}  // namespace

// rule: S-03
TEST_CASE("a freeze is leased with its deadline, and its thaw ends the lease") {
  Freezing one;
  const MonotonicTime deadline = one.clock.monotonic_now() + seconds(600);
  CHECK(one.set(true, deadline).in_force.frozen == true);
  CHECK(one.now() == "1");
  const auto record = one.leases->find(one.box.id(), Knob::cgroup_freeze);
  REQUIRE(record);
  CHECK(one.leases->read(*record)->values.deadline == deadline);
  CHECK(one.leases->read(*record)->values.original.view() == "0");
  one.writer->settle_thawed();
  CHECK(one.leases->find(one.box.id(), Knob::cgroup_freeze));
  CHECK(one.set(false, {}).written);
  CHECK(one.now() == "0");
  CHECK_FALSE(one.leases->find(one.box.id(), Knob::cgroup_freeze));
}

// rule: BUDGET-08
TEST_CASE("a freeze that comes after its deadline is not written") {
  Freezing one;
  const LimitResult late = one.set(true, one.clock.monotonic_now());
  CHECK_FALSE(late.written);
  CHECK(late.error.contains("would have ended"));
  CHECK(one.now() == "0");
  CHECK(one.leases->leased_records().empty());
}

// rule: REST-01
TEST_CASE("after a thaw, a freeze by somebody else is left alone") {
  Freezing one;
  REQUIRE(one.set(true, one.clock.monotonic_now() + milliseconds(1)).in_force.frozen.has_value());
  one.box.put("cgroup.freeze", "0\n");  // as the fast path does
  one.writer->settle_thawed();
  CHECK_FALSE(one.leases->find(one.box.id(), Knob::cgroup_freeze));
  one.box.put("cgroup.freeze", "1\n");
  one.fast_path->poll_once();
  DeadlineWatch watch;
  CHECK(watch.check(*one.leases, one.root.path(), one.clock.monotonic_now() + seconds(9))
            .restored == 0);
  CHECK(one.writer->restore_all().restored == 0);
  CHECK(one.now() == "1");
}

// rule: S-04
TEST_CASE("a restore thaws first") {
  Freezing one;
  REQUIRE(one.set(true, one.clock.monotonic_now() + seconds(600)).written);
  CHECK(one.writer->restore_all().restored == 1);
  CHECK(one.now() == "0");
  CHECK(one.leases->leased_records().empty());
}
