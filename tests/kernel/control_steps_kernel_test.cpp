// A change that is interrupted at each of its steps, on a real kernel. Its process is killed there,
// or hangs while the limits are restored and then continues. The change runs in its own traced
// process, as on the writer's threads. A step is a system call. For a process that hangs it is
// every call that reads or writes. For a killed process it is the first call after each change of
// limits or leases, because nothing else outlives it.
#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/lease/restore.h"
#include "control/writer/change_run.h"
#include "tests/kernel/control_fixture.h"

using namespace cgphase;

namespace {

#ifdef __x86_64__
constexpr std::size_t kNumberOfCall = offsetof(user, regs.orig_rax);
#else
constexpr std::size_t kNumberOfCall = 0;
#endif
constexpr std::size_t kLeaseFileBytes = 64 * 1024;
constexpr std::uint64_t kOriginalMemory = 256 * kMiB;
constexpr std::uint64_t kForeignMemory = 200 * kMiB;
constexpr const char* kForeignCpu = "77000 100000";

// The parts of a daemon for one container, without its threads. A failure ends the process.
class Changing {
 public:
  Changing(const TestCgroup& group, const std::string& runtime)
      : root_(cgroup_root()),
        leases_(take(LeaseTable::open({.runtime_dir = runtime, .records = 16}))) {
    leases_->beat(SystemClock().monotonic_now());
    cgroup_.id = group.id();
    cgroup_.path = group.path();
    cgroup_.directory = group.open();
  }
  LimitResult change(std::uint64_t quota, std::uint64_t burst, std::uint64_t bytes, bool raise) {
    LimitChange change;
    change.id = cgroup_.id;
    change.path = cgroup_.path;
    change.old_limits = read_limits(cgroup_.directory.get()).value();
    change.new_limits = with_memory(with_quota(change.old_limits, quota), bytes);
    change.new_limits.cpu_max_burst = Microseconds{burst};
    change.raise = raise;
    change.reason = "steps";
    const ChangeTools tools{*leases_, nullptr, root_,
                            [](CgroupId) { return false; }, [] { return false; }};
    return ChangeRun(tools, cgroup_, change, cgroup_.epoch.load()).run();
  }
  bool lower() { return change(50'000, 30'000, 128 * kMiB, false).written; }
  bool raise() { return change(90'000, 70'000, kOriginalMemory, true).written; }
  // CPU is lowered, and raised again when memory cannot follow.
  bool take_back() { return change(50'000, 30'000, 8 * kMiB, false).written; }
  static void require(bool held) {
    if (!held) ::_exit(7);
  }

 private:
  template <class T>
  static T take(Result<T> result) {
    require(result.has_value());
    return std::move(*result);
  }
  const std::string root_;
  std::unique_ptr<LeaseTable> leases_;
  TrackedCgroup cgroup_;
};

struct Scenario {
  std::string name;
  std::function<void(Changing&)> before;  // not traced
  std::function<void(Changing&)> traced;
  std::uint64_t quota_usec;  // expected at the end
};

const Scenario kScenarios[] = {
    {"lowering", [](Changing&) {}, [](Changing& with) { with.lower(); }, 50'000},
    {"raise", [](Changing& with) { Changing::require(with.lower()); },
     [](Changing& with) { with.raise(); }, 90'000},
    {"lowering reverted", [](Changing&) {}, [](Changing& with) { with.take_back(); }, 90'000},
};

// Repeats the change of a scenario, each time after begin().
class Traced {
 public:
  Traced(const Scenario& scenario, const TestCgroup& group, const std::string& runtime)
      : pid_(::fork()) {
    if (pid_ == 0) live(scenario, group, runtime);
    REQUIRE(::waitpid(pid_, &status_, 0) == pid_);
    REQUIRE(WIFSTOPPED(status_));
    REQUIRE(::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACESYSGOOD) == 0);
  }
  ~Traced() { kill(); }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

  // Then the process is stopped before the first system call of the change.
  void begin() {
    go_on(PTRACE_CONT);
    REQUIRE(stopped_itself());
    stops_ = 0;
  }
  // Then the process is stopped before the n-th system call of the change. False if the change
  // ended earlier.
  bool run_to(int n) {
    for (; stops_ < 2 * n - 1; ++stops_) {  // each call stops it twice, before and after
      go_on(PTRACE_SYSCALL);
      if (stopped_itself()) return false;
    }
    return true;
  }
  void run_to_end() {
    go_on(PTRACE_CONT);
    REQUIRE(stopped_itself());
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  bool reads_or_writes() const {
    // User-mode Linux, where this runs, has no PTRACE_GET_SYSCALL_INFO and exists for amd64 only.
    const long number = ::ptrace(PTRACE_PEEKUSER, pid_, kNumberOfCall, nullptr);
    return number == SYS_read || number == SYS_pread64 || number == SYS_write ||
           number == SYS_pwrite64;
  }

 private:
  [[noreturn]] static void live(const Scenario& scenario, const TestCgroup& group,
                                const std::string& runtime) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    for (;;) {
      ::raise(SIGSTOP);
      Changing changing(group, runtime);
      scenario.before(changing);
      ::raise(SIGSTOP);
      scenario.traced(changing);
    }
  }
  void go_on(__ptrace_request how) {
    if (::ptrace(how, pid_, nullptr, nullptr) != 0) FAIL("ptrace fails");
    if (::waitpid(pid_, &status_, 0) != pid_) FAIL("waitpid fails");
    if (WIFSTOPPED(status_)) return;
    pid_ = -1;
    FAIL("the change did not have the intended effect: wait status ", status_);
  }
  bool stopped_itself() const { return WSTOPSIG(status_) == SIGSTOP; }

  pid_t pid_;
  int status_ = 0;
  int stops_ = 0;
};

class Box {
 public:
  Box() : child_(group, using_memory(24 * kMiB)) {}
  // Restores the state before any change, without a lease.
  void reset() {
    std::filesystem::remove_all(runtime() + "/leases");
    group.put("cpu.max.burst", "0");
    group.put("cpu.max", "90000 100000");
    group.put("cpu.max.burst", "70000");
    group.put("memory.high", std::to_string(kOriginalMemory));
    original = group.limits();
  }
  void write_as_others() const {
    group.put("cpu.max", kForeignCpu);
    group.put("memory.high", std::to_string(kForeignMemory));
  }
  Limits as_others_left_it() const {
    return with_memory(with_quota(original, 77'000), kForeignMemory);
  }
  // Does the work of cgphase-restore, which starts slowly here.
  void restore() const {
    const auto leases = LeaseTable::open_existing({.runtime_dir = runtime()});
    REQUIRE(leases);
    if (!(*leases)->try_own()) (*leases)->revoke();
    CHECK(restore_leases(**leases, cgroup_root()).failures.empty());
  }
  void run_restore() const {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/cgphase-restore";
    std::string words[] = {program, "--runtime-dir", runtime(), "--cgroup-root", cgroup_root()};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                         words[3].data(), words[4].data(), nullptr};
    pid_t pid = -1;
    REQUIRE(::posix_spawn(&pid, words[0].c_str(), nullptr, nullptr, arguments, environ) == 0);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  // Everything that outlives the process of a change.
  std::string state() const {
    return read_file(runtime() + "/leases", kLeaseFileBytes).value() + group.get("cpu.max") +
           group.get("cpu.max.burst") + group.get("memory.high");
  }
  bool leased() const {
    const auto leases = LeaseTable::open_existing({.runtime_dir = runtime()});
    return leases && !(*leases)->leased_records().empty();
  }
  const std::string& runtime() const { return runtime_.path(); }

  const TestCgroup group;
  Limits original;

 private:
  const RuntimeDirectory runtime_;
  const Child child_;
};

struct Steps {
  std::vector<int> all;      // numbers of system calls
  std::vector<int> lasting;  // the first ones after a change of limits or leases
};

Steps steps_of(const Scenario& scenario, Traced& change, Box& box) {
  box.reset();
  change.begin();
  Steps steps;
  std::string state;
  for (int n = 1; change.run_to(n); ++n) {
    const std::string before = std::exchange(state, box.state());
    if (state != before) steps.lasting.push_back(n);
    if (state != before || change.reads_or_writes()) steps.all.push_back(n);
  }
  CHECK(box.group.limits().cpu_max->quota->value == scenario.quota_usec);
  CHECK(steps.lasting.size() >= 5);  // start, leased, three limits
  CHECK(steps.all.size() > 20);
  return steps;
}

// Calls `cut` at each step of each scenario, with a change that is stopped at that step.
void hang_at_each_step(Box& box, const std::function<void(Traced&)>& cut) {
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(scenario.name);
    Traced change(scenario, box.group, box.runtime());
    for (const int step : steps_of(scenario, change, box).all) {
      CAPTURE(step);
      box.reset();
      change.begin();
      REQUIRE(change.run_to(step));
      cut(change);
    }
  }
}

void kill_at_each_step(Box& box, const std::function<void(Traced&)>& cut) {
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(scenario.name);
    Steps steps;
    {
      Traced survey(scenario, box.group, box.runtime());
      steps = steps_of(scenario, survey, box);
    }
    for (const int step : steps.lasting) {
      CAPTURE(step);
      box.reset();
      Traced change(scenario, box.group, box.runtime());
      change.begin();
      REQUIRE(change.run_to(step));
      cut(change);
    }
  }
}

}  // namespace

// rule: S-03
TEST_CASE("kernel: killed at any step of a change, the originals are restored") {
  Box box;
  kill_at_each_step(box, [&](Traced& change) {
    change.kill();
    box.run_restore();
    CHECK(box.group.limits() == box.original);
    CHECK_FALSE(box.leased());
  });
}

TEST_CASE("kernel: killed at any step of a change, other writers' values are kept") {
  Box box;
  kill_at_each_step(box, [&](Traced& change) {
    box.write_as_others();
    change.kill();
    box.restore();
    CHECK(box.group.limits() == box.as_others_left_it());
    CHECK_FALSE(box.leased());
  });
}

TEST_CASE("kernel: hung at any step of a change, the originals are restored and stay") {
  Box box;
  hang_at_each_step(box, [&](Traced& change) {
    box.restore();
    CHECK(box.group.limits() == box.original);
    change.run_to_end();
    CHECK(box.group.limits() == box.original);
    box.restore();
    CHECK(box.group.limits() == box.original);
    CHECK_FALSE(box.leased());
  });
}

// The kernel has no compare-and-set. A value that others write between our last read of a file and
// our write is lost. It is replaced by the original, never by a lowered value.
TEST_CASE("kernel: hung at any step of a change, other writers' values are kept") {
  Box box;
  int steps = 0, lost = 0;
  hang_at_each_step(box, [&](Traced& change) {
    box.write_as_others();
    box.restore();
    const Limits others = box.as_others_left_it();
    CHECK(box.group.limits() == others);
    change.run_to_end();
    const Limits found = box.group.limits();
    CHECK((found.cpu_max == others.cpu_max || found.cpu_max == box.original.cpu_max));
    CHECK((found.memory_high == others.memory_high ||
           found.memory_high == box.original.memory_high));
    steps += 1;
    lost += found.cpu_max != others.cpu_max || found.memory_high != others.memory_high;
  });
  CAPTURE(steps);
  CAPTURE(lost);
  CHECK(lost < steps / 5);
}
