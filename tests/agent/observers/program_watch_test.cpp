#include "agent/observers/program_watch.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/agent/agent_world.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;
using namespace cgphase::test;
using std::chrono::seconds;

namespace {

// A container that BPF reports, or whose processes are listed.
class ProgramBox {
 public:
  explicit ProgramBox(bool reported, bool reads = true) : probes_(), reported_(reported) {
    probes_.tells_programs = reported;
    probes_.tells_reads = reads;
    tree_.make("/cg");
    run({{1, "/bin/sh"}});
  }

  // All its processes from now on: pid and program.
  void run(const std::vector<std::pair<int, std::string>>& processes) {
    std::string pids;
    for (const auto& [pid, program] : processes) {
      const std::string at = "/proc/" + std::to_string(pid);
      pids += std::to_string(pid) + "\n";
      tree_.remove(at + "/exe");
      tree_.link(at + "/exe", program);
      tree_.write(at + "/comm", program.substr(program.rfind('/') + 1) + "\n");
    }
    tree_.write("/cg/cgroup.procs", pids);
  }
  void act(ProgramAct::Kind kind, std::uint64_t key, seconds age, const std::string& command,
           std::uint64_t container = kId.inode) {
    probes_.acts.push_back({kind, container, key, age, command});
  }

  ProgramStat observe(seconds after = seconds(1)) {
    tick_.time += after;
    Sample sample;
    sample.id = kId;
    sample.populated = populated;
    tick_.containers.clear();
    if (sampled) tick_.containers.push_back(sample);
    watch_.observe(tick_, around());
    return sampled ? tick_.containers[0].programs : ProgramStat{};
  }
  void drain() { watch_.drain_events(tick_.time, around()); }
  bool ignored(std::uint64_t key) const { return probes_.ignored_programs.contains(key); }

  static constexpr seconds kStartUp{20};
  static constexpr CgroupId kId{1, 42};
  bool attended = true, populated = true, sampled = true, listable = true;

 private:
  ProgramWatch::Environment around() {
    return {.probes = reported_ ? &probes_ : nullptr,
            .proc_root = proc_,
            .attended = [this](CgroupId) { return attended; },
            .directory = [this](CgroupId) -> Result<Fd> {
              return open_path(tree_.root() + (listable ? "/cg" : "/none"), O_RDONLY | O_DIRECTORY);
            },
            .start_up = kStartUp};
  }

  FakeTree tree_;
  const std::string proc_ = tree_.root() + "/proc";
  ToldProbes probes_;
  bool reported_;
  ProgramWatch watch_;
  NodeSample tick_;
};

using Kind = ProgramAct::Kind;

}  // namespace

TEST_CASE("a program that ran before the first listing has read its limits, a later one has not") {
  ProgramBox box(false);
  CHECK_FALSE(box.observe().started);
  CHECK_FALSE(box.observe().started);
  box.run({{1, "/bin/sh"}, {2, "/usr/bin/step"}});
  CHECK(box.observe().started);
  CHECK_FALSE(box.observe().started);
}

TEST_CASE("another program in the same process is new, a fork of a known one is not") {
  ProgramBox box(false);
  (void)box.observe();
  box.run({{1, "/bin/sh"}, {2, "/bin/sh"}});
  CHECK_FALSE(box.observe().started);
  box.run({{1, "/bin/sh"}, {2, "/usr/bin/step"}});
  CHECK(box.observe().started);
  box.run({{1, "/bin/sh"}, {3, "/usr/bin/step"}});
  CHECK_FALSE(box.observe().started);  // the container has run it before
}

TEST_CASE("each start of a known reader is reported, and the limits it rereads stay") {
  ProgramBox box(false);
  (void)box.observe();
  box.run({{1, "/bin/sh"}, {2, "/usr/lib/jvm/bin/java"}});
  ProgramStat stat = box.observe();
  CHECK(stat.started);
  CHECK(stat.reads_cpu);
  CHECK_FALSE(stat.reads_memory);
  box.run({{1, "/bin/sh"}, {3, "/usr/lib/jvm/bin/java"}, {4, "/usr/bin/node"}});
  stat = box.observe();
  CHECK(stat.started);
  CHECK(stat.reads_memory);
  box.populated = false;
  (void)box.observe();
  box.populated = true;
  box.run({{5, "/bin/sh"}});
  stat = box.observe();
  CHECK_FALSE(stat.reads_cpu);
  CHECK_FALSE(stat.reads_memory);
}

TEST_CASE("a reader that runs at the first listing keeps its limits, and is no start") {
  for (const bool reported : {false, true}) {
    ProgramBox box(reported);
    box.run({{1, "/usr/bin/dotnet"}});
    const ProgramStat stat = box.observe();
    CHECK(stat.reads_cpu);
    CHECK_FALSE(stat.started);
  }
}

TEST_CASE("nothing is said of a container that is only observed") {
  ProgramBox box(false);
  box.attended = false;
  box.run({{1, "/usr/bin/node"}});
  CHECK_FALSE(box.observe().reads_memory);
}

TEST_CASE("a program that reads no limits at first is ignored, a reader is reported each time") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::starts, 7, seconds(0), "probe");
  box.act(Kind::starts, 8, seconds(0), "step");
  box.act(Kind::reads_cpu, 8, seconds(1), "step");
  const ProgramStat stat = box.observe();
  CHECK(stat.started);
  CHECK_FALSE(stat.reads_cpu);  // once, when it began
  CHECK_FALSE(box.observe(ProgramBox::kStartUp - seconds(1)).started);
  CHECK_FALSE(box.ignored(7));
  (void)box.observe();
  CHECK(box.ignored(7));
  CHECK_FALSE(box.ignored(8));
}

TEST_CASE("an ignored program that reads limits is reported from then on") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::starts, 7, seconds(0), "probe");
  (void)box.observe();
  (void)box.observe(ProgramBox::kStartUp);
  REQUIRE(box.ignored(7));
  box.act(Kind::reads_memory, 7, seconds(1), "probe");
  CHECK_FALSE(box.observe().reads_memory);
  CHECK_FALSE(box.ignored(7));
}

TEST_CASE("a known reader and an unknown command line are never ignored") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::starts, 9, seconds(0), "java");
  box.act(Kind::starts, 0, seconds(0), "hidden");
  CHECK(box.observe().reads_cpu);
  (void)box.observe(2 * ProgramBox::kStartUp);
  CHECK_FALSE(box.ignored(9));
  CHECK_FALSE(box.ignored(0));
}

TEST_CASE("a program that reads a limit long after its start rereads it") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::starts, 3, seconds(0), "go");
  box.act(Kind::reads_cpu, 3, seconds(40), "go");  // a process that waited before it began this
  CHECK_FALSE(box.observe().reads_cpu);
  (void)box.observe(ProgramBox::kStartUp);
  box.act(Kind::reads_cpu, 3, seconds(2), "go");  // one that it forked
  const ProgramStat stat = box.observe();
  CHECK(stat.reads_cpu);
  CHECK_FALSE(stat.reads_memory);
}

TEST_CASE("a program from before the first listing rereads a limit, however young its process") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::reads_memory, 3, seconds(2), "worker");
  CHECK(box.observe().reads_memory);
}

TEST_CASE("a read under another command line is that of each program that began lately") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::starts, 5, seconds(0), "early");
  (void)box.observe();
  (void)box.observe(ProgramBox::kStartUp);
  REQUIRE(box.ignored(5));
  box.act(Kind::starts, 7, seconds(0), "titled");
  box.act(Kind::reads_cpu, 8, seconds(1), "titled");
  CHECK_FALSE(box.observe().reads_cpu);
  CHECK_FALSE(box.ignored(5));  // it may have been that one, whose starts were ignored
  box.act(Kind::starts, 5, seconds(0), "early");
  (void)box.observe(2 * ProgramBox::kStartUp);
  (void)box.observe(ProgramBox::kStartUp);
  CHECK(box.ignored(5));
  CHECK_FALSE(box.ignored(7));
}

TEST_CASE("a second start during the first start-up does not prevent ignoring") {
  ProgramBox box(true);
  (void)box.observe();
  for (int second = 0; second <= ProgramBox::kStartUp.count(); ++second) {
    REQUIRE_FALSE(box.ignored(7));
    box.act(Kind::starts, 7, seconds(0), "probe");
    CHECK(box.observe().started);
  }
  CHECK(box.ignored(7));
}

TEST_CASE("without reports of reads no program is ignored") {
  ProgramBox box(true, false);
  (void)box.observe();
  box.act(Kind::starts, 7, seconds(0), "probe");
  (void)box.observe();
  (void)box.observe(2 * ProgramBox::kStartUp);
  CHECK_FALSE(box.ignored(7));
}

TEST_CASE("a lost event may have been a start and a read of anything") {
  for (const std::uint64_t whose : {ProgramBox::kId.inode, std::uint64_t{0}}) {
    ProgramBox box(true);
    (void)box.observe();
    box.act(Kind::starts, 6, seconds(0), "quiet");
    (void)box.observe();
    (void)box.observe(ProgramBox::kStartUp);
    REQUIRE(box.ignored(6));
    box.act(Kind::starts, 7, seconds(0), "probe");
    box.act(Kind::dropped, 0, seconds(0), "", whose);
    CHECK(box.observe().started);
    CHECK_FALSE(box.ignored(6));
    (void)box.observe(2 * ProgramBox::kStartUp);
    CHECK_FALSE(box.ignored(7));
    box.act(Kind::starts, 7, seconds(0), "probe");  // every event of this one is reported
    (void)box.observe();
    (void)box.observe(ProgramBox::kStartUp);
    CHECK(box.ignored(7));
    CHECK_FALSE(box.ignored(6));
  }
}

TEST_CASE("what an engine reads on its way into a container is no program's") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::reads_cpu, 9, seconds(0), "runc:[2:INIT]");
  CHECK_FALSE(box.observe().reads_cpu);
}

TEST_CASE("events between two samples are in the next sample") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::starts, 7, seconds(0), "step");
  box.drain();
  CHECK(box.observe().started);
  CHECK_FALSE(box.observe().started);
}

TEST_CASE("processes are listed later if the first listing failed, and earlier events count") {
  ProgramBox box(true);
  box.run({{1, "/usr/bin/java"}});
  box.listable = false;
  CHECK_FALSE(box.observe().reads_cpu);
  box.act(Kind::starts, 7, seconds(0), "step");
  box.drain();
  box.listable = true;
  const ProgramStat stat = box.observe();
  CHECK(stat.reads_cpu);
  CHECK(stat.started);
}

TEST_CASE("a start is in the next sample of its container, however late that is") {
  ProgramBox box(true);
  (void)box.observe();
  box.act(Kind::starts, 7, seconds(0), "step");
  box.sampled = false;
  (void)box.observe();
  box.sampled = true;
  CHECK(box.observe().started);
  CHECK_FALSE(box.observe().started);
}

TEST_CASE("an ignored program is reported again after all have ended or acting has stopped") {
  for (const bool ends : {false, true}) {
    ProgramBox box(true);
    (void)box.observe();
    box.act(Kind::starts, 7, seconds(0), "probe");
    (void)box.observe();
    (void)box.observe(ProgramBox::kStartUp);
    REQUIRE(box.ignored(7));
    (ends ? box.populated : box.attended) = false;
    (void)box.observe();
    CHECK_FALSE(box.ignored(7));
  }
}

TEST_CASE("more programs than are remembered make all new again") {
  ProgramBox box(true);
  (void)box.observe();
  for (std::uint64_t key = 1; key <= ProgramWatch::kMostPrograms + 1; ++key)
    box.act(Kind::starts, key, seconds(0), "loop");
  CHECK(box.observe().started);
  (void)box.observe(ProgramBox::kStartUp);
  CHECK_FALSE(box.ignored(1));
  CHECK(box.ignored(ProgramWatch::kMostPrograms + 1));
}
