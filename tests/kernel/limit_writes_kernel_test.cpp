// Writers of limits, as a real kernel reports them. Cases named bpf: need a kernel with BPF and
// type information, which user-mode Linux lacks (tests/kernel/psi_guest).
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "collectors/ebpf/limit_writes.h"
#include "collectors/ebpf/probe_source.h"
#include "tests/kernel/control_fixture.h"

namespace cgphase {
namespace {

LimitWriteProbe start_limit_writes() {
  Result<LimitWriteProbe> probe = LimitWriteProbe::start(cgroup_root());
  REQUIRE_MESSAGE(probe.has_value(), (probe ? "" : probe.error().text));
  return std::move(*probe);
}

constexpr double kBpfBudget = 0.005;

MonotonicTime monotonic_now() { return SystemClock().monotonic_now(); }

// A child in its own cgroup writes `times` times as fast as it can, then ends.
void write_as_child(const TestCgroup& writer, const TestCgroup& target, const std::string& file,
                    const std::string& value, int times = 1) {
  Child child(writer, [&](int ready) {
    for (int i = 0; i < times; ++i) (void)try_write(target.directory() + "/" + file, value);
    say_ready(ready);
  });
  child.wait();
}

}  // namespace

TEST_CASE("bpf: a write to a limit is reported with its writer, the writer's cgroup and value") {
  const TestCgroup target, writer("-writer");
  LimitWriteProbe probe = start_limit_writes();
  const MonotonicTime before = monotonic_now();
  const Child child(writer, [&](int ready) {
    ::prctl(PR_SET_NAME, "limit \x1b writer");
    (void)try_write(target.directory() + "/memory.max", "512M\n");
    (void)try_write(target.directory() + "/cpu.max", "50000 100000");
    (void)try_write(target.directory() + "/cpu.max.burst", "nonsense");
    say_ready(ready);
    ::pause();
  });
  const std::vector<LimitWrite> writes = probe.drain();
  const bool has_burst =
      ::access((target.directory() + "/cpu.max.burst").c_str(), F_OK) == 0;  // since Linux 5.14
  REQUIRE(writes.size() == (has_burst ? 3 : 2));
  for (const LimitWrite& write : writes) {
    CHECK(write.directory == target.id().inode);
    CHECK(write.pid == child.pid());
    CHECK(write.command == "limit \x1b writer");
    CHECK(write.writer_cgroup == writer.id().inode);
    CHECK(write.writer_path == writer.path());
    CHECK(write.time > before);
    CHECK(write.time < monotonic_now());
  }
  CHECK(writes[0].file == "memory.max");
  CHECK(writes[0].value == "512M");
  CHECK(writes[1].file == "cpu.max");
  CHECK(writes[1].value == "50000 100000");
  if (has_burst) {
    CHECK(writes[2].file == "cpu.max.burst");
    CHECK(writes[2].value == "nonsense");
  }
  CHECK(probe.drain().empty());
  CHECK(probe.lost() == 0);
}

TEST_CASE("bpf: this process's own writes and writes to other files are not reported") {
  const TestCgroup target;
  LimitWriteProbe probe = start_limit_writes();
  target.put("memory.max", "512M");
  target.put("cpu.max", "50000 100000");
  for (const char* file : {"memory.low", "memory.oom.group", "cpu.weight", "cgroup.max.depth"})
    write_as_child(target, target, file, "1");
  CHECK(probe.drain().empty());
  write_as_child(target, target, "memory.max", "max");
  CHECK(probe.drain().size() == 1);
}

TEST_CASE("bpf: if the writer's cgroup is gone, its pid and command are reported") {
  const TestCgroup target;
  TestCgroup writer("-writer");
  LimitWriteProbe probe = start_limit_writes();
  const std::uint64_t inode = writer.id().inode;
  write_as_child(writer, target, "memory.max", "512M");
  writer.remove();
  const std::vector<LimitWrite> writes = probe.drain();
  REQUIRE(writes.size() == 1);
  CHECK(writes[0].pid > 0);
  CHECK_FALSE(writes[0].command.empty());
  CHECK(writes[0].writer_cgroup == inode);
  CHECK(writes[0].writer_path.empty());
}

TEST_CASE("bpf: a storm of writes blocks nobody, writes that fit are reported at once, others are "
          "counted, and later writes are reported again") {
  constexpr int kStorm = 4000;  // more than the ring has room for
  const TestCgroup target;
  LimitWriteProbe probe = start_limit_writes();
  write_as_child(target, target, "memory.max", "512M", kStorm);
  const std::size_t reported = probe.drain().size();
  CHECK(reported == ProbeSource::kMostLimitWrites);
  CHECK(reported + probe.lost() == kStorm);
  CHECK(probe.drain().empty());
  const std::uint64_t lost = probe.lost();
  write_as_child(target, target, "cpu.max", "50000 100000");
  const std::vector<LimitWrite> writes = probe.drain();
  REQUIRE(writes.size() == 1);
  CHECK(writes[0].file == "cpu.max");
  CHECK(probe.lost() == lost);
}

TEST_CASE("bpf: all kernel probes exist, and status says how many writes were lost") {
  const TestCgroup target;
  const std::unique_ptr<ProbeSource> probes = open_kernel_probes(cgroup_root(), kBpfBudget);
  CHECK_FALSE(probes->sources()[0].present);
  write_as_child(target, target, "memory.max", "768M");
  probes->set_wanted(true);
  CHECK(probes->sources()[0].present);
  CHECK(probes->sources()[0].detail.empty());
  write_as_child(target, target, "memory.max", "512M", 4000);
  CHECK(probes->sources()[0].present);
  CHECK(probes->sources()[0].detail.ends_with(" writes were too many at once"));
  CHECK(probes->drain_limit_writes().size() == ProbeSource::kMostLimitWrites);
  probes->set_wanted(true);  // as before: the counts are kept
  CHECK_FALSE(probes->sources()[0].detail.empty());
  probes->set_wanted(false);
  CHECK_FALSE(probes->sources()[0].present);
  write_as_child(target, target, "memory.max", "768M");
  CHECK(probes->drain_limit_writes().empty());
}

TEST_CASE("bpf: in its own pid namespace the daemon gets no pids of the machine") {
  const pid_t outer = ::fork();
  REQUIRE(outer >= 0);
  if (outer == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(3);
    const pid_t inner = ::fork();
    if (inner == 0) {
      const auto probe = LimitWriteProbe::start(cgroup_root());
      ::_exit(!probe && probe.error().text.contains("pid namespace") ? 0 : 1);
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
  }
  int status = 0;
  ::waitpid(outer, &status, 0);
  CHECK(status == 0);
}

}  // namespace cgphase
