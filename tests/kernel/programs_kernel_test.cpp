// Programs that start in a container with lowered limits, reported by a real kernel with BPF and
// type information. User-mode Linux has neither (tests/kernel/psi_guest).
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "collectors/ebpf/program_record.h"
#include "collectors/ebpf/programs.h"
#include "tests/kernel/control_fixture.h"

namespace cgphase {
namespace {

ProgramProbe start_programs() {
  Result<ProgramProbe> probe = ProgramProbe::start();
  REQUIRE_MESSAGE(probe.has_value(), (probe ? "" : probe.error().text));
  return std::move(*probe);
}

// The output of `cat FILE...` started in the cgroup.
std::string cat(const TestCgroup& group, const std::vector<std::string>& files) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const std::string procs = group.directory() + "/cgroup.procs";
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    std::vector<char*> words;
    static char program[] = "cat";
    words.push_back(program);
    for (const std::string& file : files) words.push_back(const_cast<char*>(file.c_str()));
    words.push_back(nullptr);
    if (try_write(procs, "0") != 0 || ::dup2(ends[1], 1) < 0 || ::dup2(ends[1], 2) < 0)
      ::_exit(3);
    ::execv("/bin/cat", words.data());
    ::_exit(4);
  }
  ::close(ends[1]);
  const Fd reading(ends[0]);
  std::string said;
  char block[256];
  for (ssize_t count = 0; (count = ::read(reading.get(), block, sizeof block)) > 0;)
    said.append(block, static_cast<std::size_t>(count));
  ::waitpid(pid, nullptr, 0);
  return said;
}

bool has(const std::vector<ProgramAct>& acts, ProgramAct::Kind kind) {
  return std::ranges::find(acts, kind, &ProgramAct::kind) != acts.end();
}

using Kind = ProgramAct::Kind;

}  // namespace

TEST_CASE("bpf: a program start in a container is reported, and its read of a limit too") {
  const TestCgroup target, other("-other");
  ProgramProbe probe = start_programs();
  CHECK(probe.tier() == "starts and reads");
  REQUIRE(probe.watch(target.id().inode, true));
  const std::string quota = target.directory() + "/cpu.max";
  (void)cat(other, {quota});  // not its container and not its limits
  (void)cat(target, {other.directory() + "/cpu.max", other.directory() + "/memory.high"});
  const std::vector<ProgramAct> foreign = probe.drain();
  REQUIRE(foreign.size() == 1);
  CHECK(foreign[0].kind == Kind::starts);

  (void)cat(target, {quota, target.directory() + "/memory.high"});
  const std::vector<ProgramAct> acts = probe.drain();
  REQUIRE(acts.size() >= 3);
  CHECK(acts[0].kind == Kind::starts);
  CHECK(has(acts, Kind::reads_cpu));
  CHECK(has(acts, Kind::reads_memory));
  for (const ProgramAct& act : acts) {
    CHECK(act.container == target.id().inode);
    CHECK(act.command == "cat");
    CHECK(act.key == acts[0].key);
    CHECK(act.key != 0);
    CHECK(act.age < std::chrono::minutes(1));
  }
  CHECK(acts[0].key != foreign[0].key);
  CHECK(probe.lost() == 0);
}

TEST_CASE("bpf: an ignored command line is no longer reported, and others are") {
  const TestCgroup target;
  ProgramProbe probe = start_programs();
  REQUIRE(probe.watch(target.id().inode, true));
  (void)cat(target, {"/proc/version"});
  const std::vector<ProgramAct> first = probe.drain();
  REQUIRE(first.size() == 1);
  ::poll(nullptr, 0, 1100);  // the same start is reported once per second
  (void)cat(target, {"/proc/version"});
  REQUIRE(has(probe.drain(), Kind::starts));
  ::poll(nullptr, 0, 1100);
  probe.ignore(target.id().inode, first[0].key, true);
  (void)cat(target, {"/proc/version"});
  CHECK(probe.drain().empty());
  (void)cat(target, {"/proc/uptime"});
  CHECK(has(probe.drain(), Kind::starts));
  probe.ignore(target.id().inode, first[0].key, false);
  (void)cat(target, {"/proc/version"});
  CHECK(has(probe.drain(), Kind::starts));
  ::poll(nullptr, 0, 1100);
  CHECK(probe.watch(target.id().inode, false));
  (void)cat(target, {"/proc/uptime"});
  CHECK(probe.drain().empty());
}

TEST_CASE(
    "bpf: the fast path restores the originals when a program starts in a lowered container") {
  constexpr int kRounds = 50;
  Writing writing(true);
  const TestCgroup target;
  target.put("cpu.max", "80000 100000");
  target.put("memory.max", "268435456");
  writing.attach(target);
  ProgramProbe probe = start_programs();
  REQUIRE(probe.watch(target.id().inode, true));
  REQUIRE(writing.fast_path->listen(probe.starts()));
  const Limits original = target.limits();
  // Without it the first process in the cgroup would restore them too.
  const Child resident(target, using_memory(kMiB));
  int found = 0;
  for (int round = 0; round < kRounds; ++round) {
    REQUIRE(writing.write(target, with_quota(original, 20'000)).written);
    REQUIRE(writing.write(target, with_memory(target.limits(), 64 * kMiB)).written);
    const std::string read =
        cat(target, {target.directory() + "/cpu.max", target.directory() + "/memory.high"});
    if (read == "80000 100000\nmax\n") ++found;
    REQUIRE(eventually([&] { return target.limits() == original; }));
    const auto actions = writing.fast_path->take_actions();
    REQUIRE(!actions.empty());
    for (const FastPathAction& action : actions)  // at 0.2 cores cat may be throttled first
      CHECK((action.reason == Reason::program_started || action.reason == Reason::throttled));
    ::poll(nullptr, 0, 120);  // one start per 100 ms is reported at once
  }
  CHECK(found > kRounds / 2);
  MESSAGE(found << " of " << kRounds << " found the originals: cat, which reads at once");
}

TEST_CASE("bpf: many starts in one container hide no start in another from the fast path") {
  constexpr int kStorm = 300;
  Writing writing(true);
  const TestCgroup stormy, target;
  target.put("cpu.max", "80000 100000");
  writing.attach(target);
  ProgramProbe probe = start_programs();
  REQUIRE(probe.watch(stormy.id().inode, true));
  REQUIRE(probe.watch(target.id().inode, true));
  REQUIRE(writing.fast_path->listen(probe.starts()));
  const Child resident(target, using_memory(kMiB));
  const Limits original = target.limits();
  REQUIRE(writing.write(target, with_quota(original, 20'000)).written);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < kStorm; ++i) (void)cat(stormy, {"/proc/version", std::to_string(i)});
  (void)cat(target, {"/proc/version"});
  CHECK(eventually([&] { return target.limits() == original; }));
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(
      std::chrono::steady_clock::now() - begun).count();
  const std::vector<ProgramAct> acts = probe.drain();
  CHECK(std::ranges::count(acts, target.id().inode, &ProgramAct::container) == 1);
  const auto reported = std::ranges::count(acts, stormy.id().inode, &ProgramAct::container);
  CHECK(reported <= (seconds + 1) * (PROGRAM_ACTS_IN_A_SECOND + 1));
  CHECK((reported >= kStorm || has(acts, Kind::dropped)));
  MESSAGE(reported << " of " << kStorm << " starts reported in " << seconds << " s");
  CHECK(probe.lost() == 0);
}

}  // namespace cgphase
