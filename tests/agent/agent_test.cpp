#include "agent/agent.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "control/knob_file.h"
#include "control/recording_limit_writer.h"
#include "tests/agent/inline_gpu_looks.h"
#include "tests/agent/small_model.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

using std::chrono::seconds;

Config quick_config(const FakeTree& tree) {
  Config config;
  config.mode = Mode::enforce;
  config.policy = "hold";
  config.include = {"/test-*"};
  config.enforce.cgroups = {"/test-*"};
  config.kill_switch = tree.root() + "/disabled";
  config.proc_root = tree.root() + "/proc";
  config.rails.enough_samples = 5;
  config.rails.start_up = seconds(0);
  return config;
}

constexpr const char* kCpuMax = "100000 100000\n";
constexpr const char* kMemoryMax = "1073741824\n";

// Puts what it is asked for into the files of the tree at once, as the real one does in a kernel.
class TreeWriter final : public LimitWriter {
 public:
  explicit TreeWriter(const FakeTree& tree) : tree_(tree) {}

  Status attach(CgroupId id, const CgroupPath& path, Fd directory) override {
    return recording.attach(id, path, std::move(directory));
  }
  void detach(CgroupId id) override { recording.detach(id); }
  void submit(LimitChange change) override {
    const Limits asked = change.new_limits, before = change.old_limits;
    const std::size_t accepted = recording.changes().size();
    recording.submit(std::move(change));
    if (recording.changes().size() == accepted) return;  // told to fail
    for (const Knob knob : {Knob::cpu_max, Knob::memory_max})
      if (compare_knob(knob, asked, before) != 0)
        tree_.write(file(knob), std::string(format_knob(knob, asked)->view()) + "\n");
  }
  void submit_reclaim(CgroupId id, Bytes bytes) override { recording.submit_reclaim(id, bytes); }
  int result_fd() const override { return -1; }
  std::vector<LimitResult> take_results() override { return recording.take_results(); }
  RestoreReport restore_all() override {
    tree_.write(file(Knob::cpu_max), kCpuMax);
    tree_.write(file(Knob::memory_max), kMemoryMax);
    return recording.restore_all();
  }
  RestoreReport restore(CgroupId) override { return restore_all(); }

  RecordingLimitWriter recording;

 private:
  static std::string file(Knob knob) { return std::string("/test-a/") + file_name(knob); }
  const FakeTree& tree_;
};

// Tells of what the test says the kernel saw.
class ToldProbes final : public ProbeSource {
 public:
  std::vector<LimitWrite> take_limit_writes() override { return std::exchange(writes, {}); }
  void set_wanted(bool now) override { wanted = now; }
  std::vector<Source> sources() const override { return {{"eBPF: told", false, "by a test"}}; }

  std::vector<LimitWrite> writes;
  bool wanted = false;
};

// An agent over a tree with one container of 1 core and 1 GiB that uses a tenth of either.
class World {
 public:
  World() : config(quick_config(tree)) {
    tree.write("/cgroup.controllers", "cpu memory\n");
    write_process(1, "systemd");
    tree.link("/proc/self", "2");  // or the pid of this test may be one of those below
    write_container();
    start();
  }

  void write_process(int pid, const std::string& name) const {
    tree.write("/proc/" + std::to_string(pid) + "/comm", name + "\n");
  }

  void write_container() const {
    tree.write("/test-a/cpu.max", kCpuMax);
    tree.write("/test-a/memory.max", kMemoryMax);
    tree.write("/test-a/memory.current", "104857600\n");
    tree.write("/test-a/memory.stat", "anon 104857600\nfile 0\nshmem 0\nkernel 0\nsock 0\n");
    tree.write("/test-a/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
    tree.write("/test-a/cgroup.events", "populated 1\nfrozen 0\n");
    write_cpu();
  }

  // With a history what it posts is dropped: it comes from another thread.
  void start(std::unique_ptr<StoreThread> store = nullptr, const OomMemory& ooms = {}) {
    agent.reset();
    writer = std::make_unique<TreeWriter>(tree);
    auto sampler = NodeSampler::open({.cgroup_root = tree.root(), .include = config.include});
    REQUIRE(sampler);
    auto pipeline = Pipeline::create({.policy = config.policy, .rails = config.rails},
                                     small_engine());
    pipeline->set_oom_memory(ooms);
    const bool inline_posts = store == nullptr;
    auto told = std::make_unique<ToldProbes>();
    probes = told.get();
    agent.emplace(config,
                  Agent::Parts{.sampler = std::move(*sampler), .pipeline = std::move(*pipeline),
                               .writer = writer.get(), .probes = std::move(told),
                               .gpu_looks = std::make_unique<InlineGpuLooks>(tree.root(),
                                                                             config.proc_root),
                               .store = std::move(store),
                               .engine = small_engine(),
                               .holds = Holds::load(tree.root() + "/holds.json").value()},
                  clock, [inline_posts](std::function<void()> work) {
                    if (inline_posts) work();
                  });
  }

  // The container's cgroup is removed and made anew: another identity, the same name.
  void restart_container() {
    tree.remove("/test-a");
    agent->tick();
    write_container();
    tick();
  }

  void tick() {
    agent->tick();
    clock.advance(seconds(1));
    usage_usec += 100'000;
    periods += 10;
    write_cpu();
  }
  void run(int ticks) {
    for (int i = 0; i < ticks; ++i) tick();
  }
  // Ticks until something was lowered.
  bool run_until_lowered() {
    for (int i = 0; i < 300 && changes().empty(); ++i) tick();
    return !changes().empty();
  }

  const std::deque<LimitChange>& changes() const { return writer->recording.changes(); }
  bool original() const {
    return read_file(tree.root() + "/test-a/cpu.max", 100).value() == kCpuMax &&
           read_file(tree.root() + "/test-a/memory.max", 100).value() == kMemoryMax;
  }
  const ContainerView& container() const { return *agent->pipeline().containers().at(0); }

  FakeTree tree;
  Config config;
  ManualClock clock;
  std::unique_ptr<TreeWriter> writer;
  ToldProbes* probes = nullptr;  // the agent's
  std::optional<Agent> agent;

 private:
  void write_cpu() const {
    tree.write("/test-a/cpu.stat", "usage_usec " + std::to_string(usage_usec) +
                                       "\nnr_periods " + std::to_string(periods) +
                                       "\nnr_throttled 0\nthrottled_usec 0\n");
  }
  std::uint64_t usage_usec = 0, periods = 0;
};

}  // namespace

TEST_CASE("an opted-in container that needs little is lowered, with the originals told") {
  World world;
  REQUIRE(world.run_until_lowered());
  const LimitChange& change = world.changes().front();
  CHECK(change.path == "/test-a");
  CHECK_FALSE(change.raise);
  CHECK(change.old_limits.cpu_cores()->value == 1.0);
  CHECK(world.container().original.memory_bytes()->value == kGiB);
}

TEST_CASE("a container that the configuration does not name is only advised") {
  World world;
  world.config.enforce.cgroups.clear();
  world.start();
  world.run(200);
  CHECK(world.container().mode == Mode::advise);
  CHECK(world.changes().empty());
}

TEST_CASE("the kill switch restores every limit in the next tick and observes until it is gone") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const std::size_t before = world.changes().size();
  std::ofstream(world.config.kill_switch) << "";
  world.run(1);
  CHECK(world.agent->kill_switch());
  CHECK(world.container().mode == Mode::observe);
  CHECK(world.original());
  world.run(200);
  CHECK(world.changes().size() == before);
  std::filesystem::remove(world.config.kill_switch);
  world.run(1);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("beside another manager of limits everything is the original until it is gone") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const std::size_t before = world.changes().size();
  world.write_process(812, "kubelet");
  world.run(60);
  CHECK(world.agent->standing_down() == "the kubelet manages limits here (pid 812)");
  CHECK(world.original());
  CHECK(world.container().mode == Mode::advise);
  const auto& journal = world.agent->recent_decisions();
  const auto told = [&](auto matches) { return std::ranges::any_of(journal, matches); };
  CHECK(told([](const JournalDecision& entry) {
    return entry.decision.reason == Reason::another_manager;
  }));
  world.run(200);
  CHECK(told([](const JournalDecision& entry) {
    return entry.decision.verdict == Verdict::hands_off;
  }));
  CHECK(world.original());
  world.tree.remove("/proc/812");
  world.run(60);
  CHECK(world.agent->standing_down().empty());
  CHECK(world.container().mode == Mode::enforce);
  for (int i = 0; i < 600 && world.changes().size() == before; ++i) world.tick();
  CHECK(world.changes().size() > before);
}

TEST_CASE("an administrator's mode does not go beyond another manager") {
  World world;
  world.write_process(812, "nomad");
  world.run(3);
  world.agent->set_mode(Mode::enforce);
  world.agent->set_mode(world.container().info.id, Mode::enforce);
  CHECK(world.container().mode == Mode::advise);
  world.run(200);
  CHECK(world.changes().empty());
}

TEST_CASE("where nobody can look for other managers nothing is lowered, and a look that fails "
          "later changes nothing") {
  World world;
  world.tree.remove("/proc");
  world.start();
  world.run(200);
  CHECK(world.changes().empty());
  CHECK(world.agent->standing_down().starts_with("who else manages limits here is not known: "));
  world.write_process(1, "systemd");
  CHECK(world.run_until_lowered());
  world.tree.remove("/proc");
  world.run(120);
  CHECK(world.agent->standing_down().empty());
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("a container that opens a GPU gets its quota back, and keeps it until it has ended") {
  World world;
  world.tree.make_device("/proc/1/root/dev/nvidia0");
  world.write_process(77, "trainer");
  world.tree.write("/test-a/cgroup.procs", "77\n");
  world.tree.link("/proc/77/root", world.tree.root() + "/proc/1/root");
  world.tree.link("/proc/77/fd/0", "/dev/null");
  const auto cores = [&] { return world.container().sample.limits.cpu_cores()->value; };
  for (int i = 0; i < 300 && (world.changes().empty() || cores() == 1); ++i) world.tick();
  REQUIRE(cores() < 1);
  world.tree.link("/proc/77/fd/9", "/dev/nvidia0");
  world.run(62);  // a look a minute
  CHECK(cores() == 1);
  CHECK(world.container().cpu_holding == Verdict::gpu_container);
  CHECK(std::ranges::any_of(world.agent->recent_decisions(), [](const JournalDecision& entry) {
    return entry.decision.reason == Reason::gpu_seen;
  }));
  world.tree.remove("/proc/77/fd/9");
  world.run(700);
  CHECK(cores() == 1);
  CHECK(world.container().sample.limits.memory_bytes()->value < kGiB);
  world.restart_container();
  world.tree.write("/test-a/cgroup.procs", "77\n");
  for (int i = 0; i < 300 && cores() == 1; ++i) world.tick();
  CHECK(cores() < 1);
}

TEST_CASE("a GPU that is opened right before a quota would come down for the first time is seen") {
  World world;
  world.tree.make_device("/proc/1/root/dev/nvidia0");
  world.write_process(77, "trainer");
  world.tree.write("/test-a/cgroup.procs", "77\n");
  world.tree.link("/proc/77/root", world.tree.root() + "/proc/1/root");
  world.tree.link("/proc/77/fd/0", "/dev/null");
  world.run(3);
  REQUIRE(world.container().cpu_holding != Verdict::gpu_container);  // looked at, and not lowered
  REQUIRE(world.changes().empty());
  world.tree.link("/proc/77/fd/9", "/dev/nvidia0");
  for (int i = 0; i < 300; ++i) {
    world.tick();
    REQUIRE(world.container().sample.limits.cpu_cores()->value == 1);
  }
  CHECK(world.container().sample.limits.memory_bytes()->value < kGiB);
}

TEST_CASE("a manager that nobody knows by name is recognised, told and left its limits") {
  World world;
  world.config.rails.stand_down = std::chrono::minutes(0);
  world.start();
  for (int round = 0; round < 3; ++round) {
    CHECK(world.agent->degraded().empty());
    const std::size_t before = world.changes().size();
    for (int i = 0; i < 300 && world.changes().size() == before; ++i) world.tick();
    REQUIRE(world.changes().size() > before);
    world.run(15);
    world.tree.write("/test-a/memory.max", std::to_string(900'000'000 + 4096 * round) + "\n");
    world.run(2);
  }
  CHECK(world.container().memory_holding == Verdict::rival);
  REQUIRE(world.agent->degraded().size() == 1);
  CHECK(world.agent->degraded()[0].ends_with("again and again: test-a"));
  const std::size_t before = world.changes().size();
  world.run(300);
  CHECK(world.container().sample.limits.memory_bytes()->value == 900'000'000 + 4096 * 2);
  CHECK(world.changes().size() == before);
}

TEST_CASE("pausing a container restores it, resuming gives it back its mode") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const CgroupId id = world.container().info.id;
  world.agent->set_paused(id, true);
  CHECK(world.original());
  CHECK(world.container().mode == Mode::observe);
  world.agent->set_paused(id, false);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("an administrator's mode for one container lasts until the configuration is reloaded") {
  World world;
  world.run(3);
  const CgroupId id = world.container().info.id;
  world.agent->set_mode(id, Mode::observe);
  CHECK(world.container().mode == Mode::observe);
  CHECK(world.agent->reload(world.config).empty());
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("a pause outlives the container and the daemon, until it is taken back") {
  World world;
  world.run(3);
  world.agent->set_paused(world.container().info.id, true);
  world.restart_container();
  CHECK(world.agent->paused(world.container().info));
  CHECK(world.container().mode == Mode::observe);
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::observe);
  world.agent->set_paused(world.container().info.id, false);
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("what an OOM under a lowered limit taught outlives the daemon") {
  World world;
  const Store::Options history{.path = world.tree.root() + "/history.db", .boot_id = "boot"};
  world.start(std::make_unique<StoreThread>(Store::open(history).value()));
  const auto lowered = [&] {
    return world.container().sample.limits.memory_bytes()->value < kGiB;
  };
  world.run(3);
  for (int i = 0; i < 300 && !lowered(); ++i) world.tick();
  REQUIRE(lowered());
  world.tree.write("/test-a/memory.events", "low 0\nhigh 0\nmax 1\noom 1\noom_kill 1\n");
  world.run(2);
  const WallTime now = world.clock.wall_now();
  const double floor = world.agent->pipeline().oom_memory().floor_bytes("test-a", now);
  CHECK(floor > 0.9 * kGiB);
  REQUIRE(world.agent->store_all().has_value());
  world.agent.reset();
  Store store = Store::open(history).value();
  const auto ooms = OomMemory::from_json(store.load_learned(kOomMemoryName).value());
  REQUIRE(ooms.has_value());
  CHECK(ooms->floor_bytes("test-a", now) == floor);
  world.write_container();
  world.start(nullptr, *ooms);
  world.run(400);
  const auto limit = world.container().sample.limits.memory_bytes();
  CHECK(static_cast<double>(limit->value) >= std::min<double>(floor, kGiB));
  CHECK(world.container().memory_holding == Verdict::oom_remembered);
}

TEST_CASE("what an OOM taught and the disk refuses is tried again every ten seconds") {
  World world;
  const Store::Options history{.path = world.tree.root() + "/history.db", .boot_id = "boot"};
  world.start(std::make_unique<StoreThread>(Store::open(history).value()));
  for (int i = 0; i < 300 && world.changes().empty(); ++i) world.tick();
  world.run(60);
  REQUIRE(world.container().sample.limits.memory_bytes()->value < kGiB);
  StoreThread& store = *world.agent->store();
  REQUIRE(store.flush_and_stop().has_value());  // refuses all from now on
  const auto refused = [&] { return store.counts().refused_queries; };
  const std::uint64_t before = refused();
  world.tree.write("/test-a/memory.events", "low 0\nhigh 0\nmax 1\noom 1\noom_kill 1\n");
  world.tick();
  CHECK(refused() == before + 1);
  world.run(9);
  CHECK(refused() == before + 1);
  world.run(1);
  CHECK(refused() == before + 2);
  world.run(30);
  CHECK(refused() == before + 5);
  (void)world.agent->store_all();  // the OOM, and what the container taught
  CHECK(refused() == before + 7);
}

TEST_CASE("a mode below the configured one outlives container and daemon, one above it does not") {
  World world;
  world.run(3);
  world.agent->set_mode(world.container().info.id, Mode::advise);
  world.restart_container();
  CHECK(world.container().mode == Mode::advise);
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::advise);

  World careful;
  careful.config.mode = Mode::observe;
  careful.start();
  careful.run(3);
  careful.agent->set_mode(careful.container().info.id, Mode::enforce);
  CHECK(careful.container().mode == Mode::enforce);
  careful.restart_container();
  CHECK(careful.container().mode == Mode::observe);
}

TEST_CASE("a host held at observe stays so after a restart, and says so until it is let go") {
  World world;
  world.run(3);
  world.agent->set_mode(Mode::observe);
  world.start();
  world.run(3);
  CHECK(world.agent->config().mode == Mode::observe);
  CHECK(world.container().mode == Mode::observe);
  REQUIRE(world.agent->degraded().size() == 1);
  CHECK(world.agent->degraded()[0].find("`cgphase mode enforce`") != std::string::npos);
  world.agent->set_mode(Mode::enforce);
  CHECK(world.agent->degraded().empty());
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("a pause that cannot be stored holds all the same, and is told") {
  World world;
  world.run(3);
  std::filesystem::create_directories(world.tree.root() + "/holds.json");
  world.agent->set_paused(world.container().info.id, true);
  CHECK(world.container().mode == Mode::observe);
  REQUIRE(world.agent->degraded().size() == 1);
  CHECK(world.agent->degraded()[0].find("holds.json") != std::string::npos);
}

TEST_CASE("a reload tells what changes only with a restart, and keeps it") {
  World world;
  Config other = world.config;
  other.policy = "phase";
  const auto kept = world.agent->reload(other);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].starts_with("policy "));
  CHECK(world.agent->config().policy == "hold");
  other = world.config;
  other.bpf.enabled = false;
  CHECK(world.agent->reload(other) ==
        std::vector<std::string>{"bpf.enabled changes only with a restart"});
}

TEST_CASE("a risk that is reloaded is told to need a restart, and is not shown as if in force") {
  World world;
  Config other = world.config;
  other.risk = 0.01;
  const auto kept = world.agent->reload(other);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0] == "risk changes only with a restart");
  CHECK(world.agent->config().risk == world.config.risk);
}

TEST_CASE("a write that fails is in the journal with its reason, and nothing counts as lowered") {
  World world;
  const Error denied{ErrorKind::denied, "cpu.max: Permission denied (EACCES)"};
  world.writer->recording.fail_next(1000, denied);
  for (int i = 0; i < 300 && world.agent->totals().writes_failed == 0; ++i) world.tick();
  CHECK(world.agent->totals().writes_failed > 0);
  CHECK(world.agent->totals().writes_down == 0);
  const auto& outcomes = world.agent->recent_outcomes();
  REQUIRE_FALSE(outcomes.empty());
  CHECK(outcomes.front().outcome.kind == OutcomeKind::write_failed);
  CHECK(outcomes.front().outcome.detail.find("EACCES") != std::string::npos);
}

TEST_CASE("what was written is in the journal as it was read back") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const auto& decisions = world.agent->recent_decisions();
  const auto& outcomes = world.agent->recent_outcomes();
  REQUIRE_FALSE(outcomes.empty());
  const Outcome& written = outcomes.front().outcome;
  CHECK(written.kind == OutcomeKind::written);
  CHECK(written.detail.find(" reads ") != std::string::npos);
  const auto decided = std::ranges::find_if(decisions, [&](const JournalDecision& entry) {
    return entry.decision.decision_id == written.decision_id;
  });
  REQUIRE(decided != decisions.end());
  CHECK(decided->decision.verdict == Verdict::allowed);
  CHECK(decided->decision.evidence[Fact::floor]);
}

TEST_CASE("what a container had saved stays in the totals when it is gone") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(30);
  const double saved = world.container().saved_byte_seconds;
  REQUIRE(saved > 0);
  world.tree.remove("/test-a");
  world.agent->tick();
  CHECK(world.agent->pipeline().containers().empty());
  CHECK(world.agent->totals().saved_byte_seconds == doctest::Approx(saved));
}

TEST_CASE("the need is read again before memory.max falls, against 90 % of the new limit") {
  World world;
  world.run(300);
  bool memory_fell = false;
  for (const LimitChange& change : world.changes()) {
    const bool falls = compare_knob(Knob::memory_max, change.new_limits, change.old_limits) < 0;
    memory_fell = memory_fell || falls;
    CHECK(change.memory_need_ceiling.has_value() == falls);
    if (!falls) continue;
    const std::uint64_t limit = change.new_limits.memory_bytes()->value;
    CHECK(change.memory_need_ceiling->value == limit * 9 / 10);
  }
  CHECK(memory_fell);
}

TEST_CASE("cache in the way is squeezed by 1 % in six seconds, only while pressure is quiet") {
  constexpr const char* kQuiet = "some avg10=0.09 avg60=0.09 avg300=9.00 total=0\n";
  World world;
  // Nobody else's rule is to stop it.
  world.config.rails.quiet_memory_io_some_avg10 = 1;
  world.tree.write("/test-a/cpu.max", "max 100000\n");  // so that memory is alone
  for (const char* file : {"/test-a/memory.pressure", "/test-a/io.pressure"})
    world.tree.write(file, kQuiet);
  world.tree.write("/test-a/memory.current", "1063256064\n");
  world.tree.write("/test-a/memory.stat", "anon 104857600\nfile 958398464\nshmem 0\nkernel 0\n"
                                          "sock 0\ninactive_file 819200000\n");
  world.start();
  const auto& reclaims = world.writer->recording.reclaims();
  for (int i = 0; i < 300 && reclaims.empty(); ++i) world.tick();
  REQUIRE(world.container().memory_holding == Verdict::cache_in_way);
  world.run(59);
  CHECK(reclaims.size() == 10);
  for (const auto& reclaim : reclaims) {
    CHECK(reclaim.id == world.container().info.id);
    CHECK(reclaim.bytes.value == 8'192'000);
  }
  for (const char* file : {"/test-a/memory.pressure", "/test-a/io.pressure"})
    for (const char* loud : {"some avg10=0.10 avg60=0.00 avg300=0.00 total=0\n",
                             "some avg10=0.00 avg60=0.10 avg300=0.00 total=0\n"}) {
      CAPTURE(std::string(file));
      CAPTURE(std::string(loud));
      const std::size_t before = reclaims.size();
      world.tree.write(file, loud);
      world.run(12);
      CHECK(reclaims.size() == before);
      world.tree.write(file, kQuiet);
      world.run(6);
      CHECK(reclaims.size() == before + 1);
    }
}

TEST_CASE("stopping restores everything that was lowered") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  CHECK_FALSE(world.original());
  const auto report = world.agent->stop();
  CHECK(report.restored > 0);
  CHECK(report.failures.empty());
  CHECK(world.original());
}

TEST_CASE("a hold for somebody else's change is journaled with the writer of it") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.probes->writes.push_back({.time = world.clock.monotonic_now(),
                                  .directory = world.container().info.id.inode,
                                  .file = "memory.max",
                                  .value = "805306368",
                                  .pid = 1,
                                  .command = "systemd",
                                  .writer_path = "/init.scope"});
  world.tree.write("/test-a/memory.max", "805306368\n");
  world.run(10);
  world.write_process(812, "kubelet");  // what it holds back is not for that write
  world.run(60);
  bool stood_down = false, hands_off = false;
  for (const JournalDecision& entry : world.agent->recent_decisions()) {
    const bool held = entry.decision.verdict == Verdict::standing_down;
    stood_down = stood_down || held;
    hands_off = hands_off || entry.decision.verdict == Verdict::hands_off;
    CHECK(entry.writer == (held ? "systemd (pid 1, init.scope) wrote memory.max 805306368" : ""));
  }
  CHECK(stood_down);
  CHECK(hands_off);
}

TEST_CASE("a change of which the kernel did not tell has no writer in the journal") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.tree.write("/test-a/memory.max", "805306368\n");
  world.run(10);
  const auto& journal = world.agent->recent_decisions();
  CHECK(std::ranges::any_of(journal, [](const JournalDecision& entry) {
    return entry.decision.verdict == Verdict::standing_down && entry.writer.empty();
  }));
}

TEST_CASE("whose write is told where it holds back, not where limits are lowered from it again") {
  World world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.probes->writes.push_back({.time = world.clock.monotonic_now(),
                                  .directory = world.container().info.id.inode,
                                  .file = "memory.max",
                                  .value = "805306368",
                                  .pid = 812,
                                  .command = "sh"});
  world.tree.write("/test-a/memory.max", "805306368\n");
  world.run(10);
  const auto lowered_from_it = [](const JournalDecision& entry) {
    const auto& before = entry.decision.old_limits.memory_max;
    return entry.decision.verdict == Verdict::allowed && before &&
           before->bytes == Bytes{805306368};
  };
  const auto& journal = world.agent->recent_decisions();
  for (int i = 0; i < 1200 && std::ranges::none_of(journal, lowered_from_it); ++i) world.tick();
  const auto lowered = std::ranges::find_if(journal, lowered_from_it);
  REQUIRE(lowered != journal.end());
  CHECK(lowered->writer.empty());
  CHECK(std::ranges::any_of(journal, [](const JournalDecision& entry) {
    return entry.decision.verdict == Verdict::standing_down && !entry.writer.empty();
  }));
}

TEST_CASE("programs are wanted in the kernel only while something is not just observed") {
  World world;
  CHECK_FALSE(world.probes->wanted);
  world.run(2);
  CHECK(world.probes->wanted);
  world.agent->set_mode(Mode::advise);
  world.tick();
  CHECK(world.probes->wanted);
  world.agent->set_mode(Mode::observe);
  world.tick();
  CHECK_FALSE(world.probes->wanted);
  world.agent->set_mode(world.container().info.id, Mode::enforce);
  world.tick();
  CHECK(world.probes->wanted);
}

TEST_CASE("what the kernel's probes can tell is among the sources") {
  World world;
  CHECK(std::ranges::any_of(world.agent->sources(), [](const Source& source) {
    return source.name == "eBPF: told" && !source.present && source.detail == "by a test";
  }));
}
