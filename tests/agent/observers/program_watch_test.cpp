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

// A container of which BPF tells, or whose processes are listed.
class ProgramBox {
 public:
  explicit ProgramBox(bool told, bool reads = true) : probes_(), told_(told) {
    probes_.tells_programs = told;
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

  ProgramStat look(seconds after = seconds(1)) {
    tick_.time += after;
    Sample sample;
    sample.id = kId;
    sample.populated = populated;
    tick_.containers.clear();
    if (sampled) tick_.containers.push_back(sample);
    watch_.look(tick_, around());
    return sampled ? tick_.containers[0].programs : ProgramStat{};
  }
  void hear() { watch_.hear(tick_.time, around()); }
  bool ignored(std::uint64_t key) const { return probes_.ignored_programs.contains(key); }

  static constexpr seconds kStartUp{20};
  static constexpr CgroupId kId{1, 42};
  bool attended = true, populated = true, sampled = true, listable = true;

 private:
  ProgramWatch::Environment around() {
    return {.probes = told_ ? &probes_ : nullptr,
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
  bool told_;
  ProgramWatch watch_;
  NodeSample tick_;
};

using Kind = ProgramAct::Kind;

}  // namespace

TEST_CASE("what ran before anybody looked has read its limits, what starts later has not") {
  ProgramBox box(false);
  CHECK_FALSE(box.look().started);
  CHECK_FALSE(box.look().started);
  box.run({{1, "/bin/sh"}, {2, "/usr/bin/step"}});
  CHECK(box.look().started);
  CHECK_FALSE(box.look().started);
}

TEST_CASE("another program in the same process is new, a fork of a known one is not") {
  ProgramBox box(false);
  (void)box.look();
  box.run({{1, "/bin/sh"}, {2, "/bin/sh"}});
  CHECK_FALSE(box.look().started);
  box.run({{1, "/bin/sh"}, {2, "/usr/bin/step"}});
  CHECK(box.look().started);
  box.run({{1, "/bin/sh"}, {3, "/usr/bin/step"}});
  CHECK_FALSE(box.look().started);  // the container has run it before
}

TEST_CASE("a known reader of limits is told whenever it starts, and what it reads again is kept") {
  ProgramBox box(false);
  (void)box.look();
  box.run({{1, "/bin/sh"}, {2, "/usr/lib/jvm/bin/java"}});
  ProgramStat stat = box.look();
  CHECK(stat.started);
  CHECK(stat.reads_cpu);
  CHECK_FALSE(stat.reads_memory);
  box.run({{1, "/bin/sh"}, {3, "/usr/lib/jvm/bin/java"}, {4, "/usr/bin/node"}});
  stat = box.look();
  CHECK(stat.started);
  CHECK(stat.reads_memory);
  box.populated = false;
  (void)box.look();
  box.populated = true;
  box.run({{5, "/bin/sh"}});
  stat = box.look();
  CHECK_FALSE(stat.reads_cpu);
  CHECK_FALSE(stat.reads_memory);
}

TEST_CASE("a reader that runs when somebody looks first keeps its limits, and is no start") {
  for (const bool told : {false, true}) {
    ProgramBox box(told);
    box.run({{1, "/usr/bin/dotnet"}});
    const ProgramStat stat = box.look();
    CHECK(stat.reads_cpu);
    CHECK_FALSE(stat.started);
  }
}

TEST_CASE("nothing is said of a container that is only observed") {
  ProgramBox box(false);
  box.attended = false;
  box.run({{1, "/usr/bin/node"}});
  CHECK_FALSE(box.look().reads_memory);
}

TEST_CASE("who reads no limits in its first time is ignored, who reads them is told each time") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::starts, 7, seconds(0), "probe");
  box.act(Kind::starts, 8, seconds(0), "step");
  box.act(Kind::reads_cpu, 8, seconds(1), "step");
  const ProgramStat stat = box.look();
  CHECK(stat.started);
  CHECK_FALSE(stat.reads_cpu);  // once, when it began
  CHECK_FALSE(box.look(ProgramBox::kStartUp - seconds(1)).started);
  CHECK_FALSE(box.ignored(7));
  (void)box.look();
  CHECK(box.ignored(7));
  CHECK_FALSE(box.ignored(8));
}

TEST_CASE("who is ignored and reads all the same is told from then on") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::starts, 7, seconds(0), "probe");
  (void)box.look();
  (void)box.look(ProgramBox::kStartUp);
  REQUIRE(box.ignored(7));
  box.act(Kind::reads_memory, 7, seconds(1), "probe");
  CHECK_FALSE(box.look().reads_memory);
  CHECK_FALSE(box.ignored(7));
}

TEST_CASE("a known reader and an unknown command line are never ignored") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::starts, 9, seconds(0), "java");
  box.act(Kind::starts, 0, seconds(0), "hidden");
  CHECK(box.look().reads_cpu);
  (void)box.look(2 * ProgramBox::kStartUp);
  CHECK_FALSE(box.ignored(9));
  CHECK_FALSE(box.ignored(0));
}

TEST_CASE("who reads a limit long after it began reads it again") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::starts, 3, seconds(0), "go");
  box.act(Kind::reads_cpu, 3, seconds(40), "go");  // a process that waited before it began this
  CHECK_FALSE(box.look().reads_cpu);
  (void)box.look(ProgramBox::kStartUp);
  box.act(Kind::reads_cpu, 3, seconds(2), "go");  // one that it forked
  const ProgramStat stat = box.look();
  CHECK(stat.reads_cpu);
  CHECK_FALSE(stat.reads_memory);
}

TEST_CASE("what began before anybody looked reads a limit again, however young its process") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::reads_memory, 3, seconds(2), "worker");
  CHECK(box.look().reads_memory);
}

TEST_CASE("a read under another command line is that of each program that began lately") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::starts, 5, seconds(0), "early");
  (void)box.look();
  (void)box.look(ProgramBox::kStartUp);
  REQUIRE(box.ignored(5));
  box.act(Kind::starts, 7, seconds(0), "titled");
  box.act(Kind::reads_cpu, 8, seconds(1), "titled");
  CHECK_FALSE(box.look().reads_cpu);
  CHECK_FALSE(box.ignored(5));  // it may have been that one, whose starts were told no more
  box.act(Kind::starts, 5, seconds(0), "early");
  (void)box.look(2 * ProgramBox::kStartUp);
  (void)box.look(ProgramBox::kStartUp);
  CHECK(box.ignored(5));
  CHECK_FALSE(box.ignored(7));
}

TEST_CASE("who starts again before its first time is over is ignored after it all the same") {
  ProgramBox box(true);
  (void)box.look();
  for (int second = 0; second <= ProgramBox::kStartUp.count(); ++second) {
    REQUIRE_FALSE(box.ignored(7));
    box.act(Kind::starts, 7, seconds(0), "probe");
    CHECK(box.look().started);
  }
  CHECK(box.ignored(7));
}

TEST_CASE("where reads are not told nobody is known to be quiet") {
  ProgramBox box(true, false);
  (void)box.look();
  box.act(Kind::starts, 7, seconds(0), "probe");
  (void)box.look();
  (void)box.look(2 * ProgramBox::kStartUp);
  CHECK_FALSE(box.ignored(7));
}

TEST_CASE("what is not told may have been a start and a read of anything") {
  for (const std::uint64_t whose : {ProgramBox::kId.inode, std::uint64_t{0}}) {
    ProgramBox box(true);
    (void)box.look();
    box.act(Kind::starts, 6, seconds(0), "quiet");
    (void)box.look();
    (void)box.look(ProgramBox::kStartUp);
    REQUIRE(box.ignored(6));
    box.act(Kind::starts, 7, seconds(0), "probe");
    box.act(Kind::dropped, 0, seconds(0), "", whose);
    CHECK(box.look().started);
    CHECK_FALSE(box.ignored(6));
    (void)box.look(2 * ProgramBox::kStartUp);
    CHECK_FALSE(box.ignored(7));
    box.act(Kind::starts, 7, seconds(0), "probe");  // all of this one is told
    (void)box.look();
    (void)box.look(ProgramBox::kStartUp);
    CHECK(box.ignored(7));
    CHECK_FALSE(box.ignored(6));
  }
}

TEST_CASE("what an engine reads on its way into a container is no program's") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::reads_cpu, 9, seconds(0), "runc:[2:INIT]");
  CHECK_FALSE(box.look().reads_cpu);
}

TEST_CASE("what is told between two readings is told with the next one") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::starts, 7, seconds(0), "step");
  box.hear();
  CHECK(box.look().started);
  CHECK_FALSE(box.look().started);
}

TEST_CASE("processes that could not be listed at first are, and what was told meanwhile counts") {
  ProgramBox box(true);
  box.run({{1, "/usr/bin/java"}});
  box.listable = false;
  CHECK_FALSE(box.look().reads_cpu);
  box.act(Kind::starts, 7, seconds(0), "step");
  box.hear();
  box.listable = true;
  const ProgramStat stat = box.look();
  CHECK(stat.reads_cpu);
  CHECK(stat.started);
}

TEST_CASE("a start is told with the next sample of its container, however late that is") {
  ProgramBox box(true);
  (void)box.look();
  box.act(Kind::starts, 7, seconds(0), "step");
  box.sampled = false;
  (void)box.look();
  box.sampled = true;
  CHECK(box.look().started);
  CHECK_FALSE(box.look().started);
}

TEST_CASE("who was ignored is told again once all have ended, or nobody acts any more") {
  for (const bool ends : {false, true}) {
    ProgramBox box(true);
    (void)box.look();
    box.act(Kind::starts, 7, seconds(0), "probe");
    (void)box.look();
    (void)box.look(ProgramBox::kStartUp);
    REQUIRE(box.ignored(7));
    (ends ? box.populated : box.attended) = false;
    (void)box.look();
    CHECK_FALSE(box.ignored(7));
  }
}

TEST_CASE("more programs than are remembered make all new again") {
  ProgramBox box(true);
  (void)box.look();
  for (std::uint64_t key = 1; key <= ProgramWatch::kMostPrograms + 1; ++key)
    box.act(Kind::starts, key, seconds(0), "loop");
  CHECK(box.look().started);
  (void)box.look(ProgramBox::kStartUp);
  CHECK_FALSE(box.ignored(1));
  CHECK(box.ignored(ProgramWatch::kMostPrograms + 1));
}
