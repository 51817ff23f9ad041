// The promises of control/ on a real cgroup v2 hierarchy: real throttling, real OOM kills, real
// errors of the kernel. Run it as root in a guest; CGPHASE_CGROUP_ROOT names the hierarchy's root.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/cgroup_root.h"
#include "cgroupfs/memory_reading.h"
#include "control/lease/companion.h"
#include "control/lease/restore.h"
#include "control/writer/kernel_limit_writer.h"
#include "tests/kernel/control_fixture.h"

using namespace cgphase;

TEST_CASE("kernel: the root is found, has cpu and memory, and limits can be enforced") {
  const auto root = discover_cgroup_root(std::nullopt);
  REQUIRE_MESSAGE(root, root.error().text);
  CHECK(root->path == cgroup_root());
  CHECK(root->can_enforce);
  CHECK_FALSE(root->hybrid);
}

TEST_CASE("kernel: a lowered cpu.max throttles, and the raise ends it") {
  const TestCgroup group;
  Writing writing;
  writing.attach(group);
  const Child child(group, spinning);
  CHECK(group.number("cpu.stat", "nr_throttled") == 0);
  const LimitResult lowered = writing.write(group, with_quota(group.limits(), 20'000));
  REQUIRE_MESSAGE(lowered.written, lowered.error);
  CHECK(group.get("cpu.max") == "20000 100000");
  CHECK(eventually([&] { return group.number("cpu.stat", "nr_throttled") >= 3; }));
  CHECK(group.number("cpu.stat", "throttled_usec") > 0);
  Limits original = group.limits();
  original.cpu_max->quota.reset();
  CHECK(writing.write(group, original, true).written);
  CHECK(group.get("cpu.max") == "max 100000");
  CHECK(writing.leases->leased_records().empty());
}

TEST_CASE("kernel: a naive memory limit causes an OOM kill") {
  const TestCgroup group;
  group.put("memory.max", std::to_string(256 * kMiB));
  Child child(group, using_memory(96 * kMiB));
  const std::uint64_t current = parse_u64(group.get("memory.current")).value();
  REQUIRE(current >= 96 * kMiB);
  group.put("memory.max", std::to_string(current - current / 10));
  CHECK(eventually([&] { return !child.alive(); }));
  CHECK(child.killed());
  CHECK(group.number("memory.events", "oom_kill") == 1);
}

TEST_CASE("kernel: the writer rejects the same limit and the process survives") {
  const TestCgroup group;
  group.put("memory.max", std::to_string(256 * kMiB));
  Writing writing;
  writing.attach(group);
  Child child(group, using_memory(96 * kMiB));
  const std::uint64_t current = parse_u64(group.get("memory.current")).value();
  const Limits naive = with_memory(group.limits(), current - current / 10);
  for (const auto ceiling : {std::optional<Bytes>(Bytes{80 * kMiB}), std::optional<Bytes>()}) {
    const LimitResult result = writing.write(group, naive, false, ceiling);
    CHECK_FALSE(result.written);
    CHECK(result.failed_as == ErrorKind::invalid);
    CHECK(group.get("memory.high") == "max");
    CHECK(child.alive());
  }
  CHECK(group.number("memory.events", "oom_kill") == 0);
  CHECK(group.number("memory.events", "max") == 0);
  const LimitResult fits =
      writing.write(group, with_memory(group.limits(), 128 * kMiB), false, Bytes{112 * kMiB});
  CHECK_MESSAGE(fits.written, fits.error);
  CHECK(child.alive());
}

TEST_CASE("kernel: cache above a new memory limit is dropped first, without an event") {
  const TestCgroup group;
  group.put("memory.max", std::to_string(256 * kMiB));
  Writing writing;
  writing.attach(group);
  Child child(group, caching(64 * kMiB));
  REQUIRE(group.number("memory.stat", "file") > 48 * kMiB);
  const LimitResult result =
      writing.write(group, with_memory(group.limits(), 32 * kMiB), false, Bytes{24 * kMiB});
  CHECK_MESSAGE(result.written, result.error);
  CHECK(group.get("memory.high") == std::to_string(32 * kMiB));
  CHECK(child.alive());
  CHECK(group.number("memory.events", "max") == 0);
  CHECK(group.number("memory.events", "oom") == 0);
}

// rule: MEM-06
TEST_CASE("kernel: memory.reclaim drops file cache and leaves no setting behind") {
  const TestCgroup group;
  Writing writing;
  writing.attach(group);
  const Child child(group, caching(64 * kMiB));
  const std::uint64_t before = group.number("memory.stat", "file");
  REQUIRE(before > 48 * kMiB);
  writing.writer->submit_reclaim(group.id(), Bytes{32 * kMiB});
  const LimitResult result = writing.result();
  CHECK_MESSAGE(result.written, result.error);
  CHECK(group.number("memory.stat", "file") + 24 * kMiB < before);
  CHECK(group.get("memory.max") == "max");
}

// rule: S-02
TEST_CASE("kernel: a removed cgroup is gone, and a new cgroup at its path is never written") {
  TestCgroup group;
  Writing writing;
  writing.attach(group);
  REQUIRE(writing.write(group, with_quota(group.limits(), 50'000)).written);
  LimitChange change;
  change.id = group.id();
  change.path = group.path();
  change.old_limits = group.limits();
  change.new_limits = with_quota(group.limits(), 40'000);
  const Fd directory = group.open();
  const Fd held = open_at(directory.get(), "cpu.max", O_RDONLY).value();
  group.remove();
  char byte;
  CHECK(::pread(held.get(), &byte, 1, 0) < 0);
  CHECK(errno == ENODEV);
  CHECK_FALSE(directory_alive(directory.get()));
  CHECK(writing.submit(change).failed_as == ErrorKind::gone);
  group.make();
  CHECK(group.id() != change.id);
  CHECK(writing.submit(change).failed_as == ErrorKind::gone);
  change.raise = true;
  CHECK(writing.submit(change).failed_as == ErrorKind::gone);
  group.put("cpu.max", "50000 100000");  // exactly our value, but not our cgroup
  CHECK(writing.writer->restore_all().failures.empty());
  CHECK(group.get("cpu.max") == "50000 100000");
}

TEST_CASE("kernel: a directory outside cgroup v2 is not attached") {
  const Writing writing;
  const RuntimeDirectory plain;
  Fd directory = open_path(plain.path(), O_RDONLY | O_DIRECTORY).value();
  struct stat status;
  REQUIRE(::fstat(directory.get(), &status) == 0);
  const CgroupId id{status.st_dev, status.st_ino};
  CHECK(writing.writer->attach(id, "/plain", std::move(directory)).error().kind ==
        ErrorKind::unsupported);
}

TEST_CASE("kernel: a burst above the quota is EINVAL in the naive order and accepted in ours") {
  const TestCgroup group;
  group.put("cpu.max", "100000 100000");
  group.put("cpu.max.burst", "80000");
  CHECK(try_write(group.directory() + "/cpu.max", "50000 100000") == EINVAL);
  Writing writing;
  writing.attach(group);
  Limits lower = with_quota(group.limits(), 50'000);
  lower.cpu_max_burst = Microseconds{40'000};
  const LimitResult lowered = writing.write(group, lower);
  CHECK_MESSAGE(lowered.written, lowered.error);
  CHECK(try_write(group.directory() + "/cpu.max.burst", "80000") == EINVAL);
  Limits raise = with_quota(group.limits(), 100'000);
  raise.cpu_max_burst = Microseconds{80'000};
  const LimitResult raised = writing.write(group, raise, true);
  CHECK_MESSAGE(raised.written, raised.error);
  CHECK(group.get("cpu.max") == "100000 100000");
  CHECK(group.get("cpu.max.burst") == "80000");
  CHECK(writing.leases->leased_records().empty());
}

TEST_CASE("kernel: restore converges when quota and burst must change in either order") {
  const TestCgroup group;
  group.put("cpu.max", "100000 100000");
  group.put("cpu.max.burst", "80000");
  Writing writing;
  writing.attach(group);
  CHECK(writing.write(group, with_quota(group.limits(), 30'000)).written);
  CHECK(group.get("cpu.max.burst") == "30000");
  const auto report = writing.writer->restore_all();
  CHECK(report.failures.empty());
  CHECK(report.restored == 2);
  CHECK(group.get("cpu.max") == "100000 100000");
  CHECK(group.get("cpu.max.burst") == "80000");
}

TEST_CASE("kernel: a value that the kernel rejects reverts the whole change") {
  const TestCgroup group;
  group.put("memory.max", std::to_string(256 * kMiB));
  Writing writing;
  writing.attach(group);
  const Child child(group, using_memory(64 * kMiB));
  Limits after = with_memory(with_quota(group.limits(), 50'000), 32 * kMiB);
  const Limits before = group.limits();
  CHECK_FALSE(writing.write(group, after).written);
  CHECK(group.limits() == before);
  CHECK(writing.leases->leased_records().empty());
}

TEST_CASE("kernel: another writer's update of another limit is not lost") {
  const TestCgroup group;
  const std::string other = std::to_string(128 * kMiB);
  Writing writing;
  writing.attach(group);
  LimitChange change;
  change.id = group.id();
  change.path = group.path();
  change.old_limits = group.limits();
  change.new_limits = with_quota(group.limits(), 50'000);
  group.put("memory.max", other);
  const LimitResult result = writing.submit(change);
  CHECK_MESSAGE(result.written, result.error);
  CHECK(group.get("cpu.max") == "50000 100000");
  CHECK(group.get("memory.max") == other);
}

TEST_CASE("kernel: limits of a cgroup with an odd name are written") {
  for (const char* name : {"-with space", "-%p%u", "-\x1b[31m", "-\xff\xfe", "-<b>&quot;"}) {
    const TestCgroup group(name);
    Writing writing;
    writing.attach(group);
    const LimitResult result = writing.write(group, with_quota(group.limits(), 50'000));
    CHECK_MESSAGE(result.written, result.error);
    CHECK(writing.writer->restore_all().restored == 1);
    CHECK(group.get("cpu.max") == "max 100000");
  }
}

TEST_CASE("kernel: the fast path raises a throttled container up to its original") {
  const TestCgroup group;
  group.put("cpu.max", "80000 100000");
  Writing writing(true);
  writing.attach(group);
  const Child child(group, spinning);
  REQUIRE(writing.write(group, with_quota(group.limits(), 10'000)).written);
  CHECK(eventually([&] { return group.get("cpu.max") == "80000 100000"; }));
  std::vector<FastPathAction> actions;
  CHECK(eventually([&] {  // an action is reported after it is done
    for (const FastPathAction& action : writing.fast_path->take_actions())
      actions.push_back(action);
    return actions.size() >= 2;
  }));
  REQUIRE(actions.size() >= 2);
  CHECK(actions[0].new_value.view() == "12000 100000");
  CHECK(actions[0].reason == Reason::throttled);
}

TEST_CASE("kernel: the fast path saves a container that grows into its lowered limit") {
  const TestCgroup group;
  group.put("memory.max", std::to_string(512 * kMiB));
  Writing writing(true);
  writing.attach(group);
  int go[2];
  REQUIRE(::pipe2(go, O_CLOEXEC) == 0);
  Child child(group, [&](int ready) {
    touch(64 * kMiB);
    say_ready(ready);
    char byte;
    if (::read(go[0], &byte, 1) != 1) ::_exit(6);
    for (int step = 0; step < 60; ++step) {
      touch(4 * kMiB);
      ::poll(nullptr, 0, 100);  // at most 40 MiB/s
    }
  });
  const LimitResult lowered =
      writing.write(group, with_memory(group.limits(), 192 * kMiB), false, Bytes{160 * kMiB});
  REQUIRE_MESSAGE(lowered.written, lowered.error);
  REQUIRE(::write(go[1], "g", 1) == 1);
  CHECK(eventually([&] { return !child.alive(); }));
  CHECK_FALSE(child.killed());
  CHECK(group.number("memory.events", "oom_kill") == 0);
  CHECK(group.get("memory.high") == "max");
  ::close(go[0]);
  ::close(go[1]);
}

TEST_CASE("kernel: the originals are restored after SIGKILL at twenty random moments") {
  const TestCgroup group;
  group.put("cpu.max", "90000 100000");
  group.put("cpu.max.burst", "70000");
  group.put("memory.max", std::to_string(256 * kMiB));
  const Limits original = group.limits();
  constexpr unsigned kSeed = 20;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    const RuntimeDirectory runtime;
    int reports[2];
    REQUIRE(::pipe2(reports, O_CLOEXEC) == 0);
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      auto leases = LeaseTable::open({.runtime_dir = runtime.path(), .records = 16});
      if (!leases) ::_exit(2);
      auto companion =
          Companion::start({.runtime_dir = runtime.path(), .cgroup_root = cgroup_root()});
      if (!companion) ::_exit(3);
      auto writer =
          KernelLimitWriter::create({.cgroup_root = cgroup_root(), .leases = leases->get()});
      if (!writer || !(*writer)->attach(group.id(), group.path(), group.open())) ::_exit(4);
      const pid_t pid = companion->pid();
      if (::write(reports[1], &pid, sizeof pid) != sizeof pid) ::_exit(5);
      const SystemClock clock;
      for (std::uint64_t quota = 89'000;; quota = quota > 20'000 ? quota - 1'000 : 89'000) {
        (*writer)->heartbeat(clock.monotonic_now());
        LimitChange change;
        change.id = group.id();
        change.path = group.path();
        change.old_limits = group.limits();
        change.raise = quota > change.old_limits.cpu_max->quota.value_or(Microseconds{}).value;
        change.new_limits = with_memory(with_quota(change.old_limits, quota), quota * 2'500);
        (*writer)->submit(change);
        pollfd ready{(*writer)->result_fd(), POLLIN, 0};
        ::poll(&ready, 1, 1000);
        (void)(*writer)->drain_results();
      }
    }
    pid_t companion = -1;
    REQUIRE(::read(reports[0], &companion, sizeof companion) == sizeof companion);
    ::close(reports[0]);
    ::close(reports[1]);
    const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, companion, 0)));
    ::usleep(std::uniform_int_distribution<unsigned>(0, 120'000)(random));
    ::kill(daemon, SIGKILL);
    ::waitpid(daemon, nullptr, 0);
    pollfd waiting{ended.get(), POLLIN, 0};
    CHECK((!ended.valid() || ::poll(&waiting, 1, kPatienceMs) == 1));
    CHECK(group.limits() == original);
  }
}
