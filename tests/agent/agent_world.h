// The agent on made-up files, ticked by hand.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "base/file.h"
#include "cgroupfs/knob_file.h"
#include "tests/agent/logging/told_entries.h"
#include "tests/agent/observers/inline_gpu_scanner.h"
#include "tests/agent/observers/told_gpus.h"
#include "tests/collectors/fake_tree.h"
#include "tests/control/writer/recording_limit_writer.h"
#include "tests/core/small_model.h"

namespace cgphase::test {

inline Config quick_config(const FakeTree& tree) {
  Config config;
  config.mode = Mode::enforce;
  config.policy = "hold";
  config.include = {"/test-*"};
  config.enforce.cgroups = {"/test-*"};
  config.enforce.cpu = CpuLever::both;
  config.kill_switch = tree.root() + "/disabled";
  config.proc_root = tree.root() + "/proc";
  config.safety.enough_samples = 5;
  config.safety.start_up = std::chrono::seconds(0);
  return config;
}

// The overrides that an earlier agent saved below this tree.
inline OverrideTable saved_overrides(const FakeTree& tree) {
  return OverrideTable::load(tree.root() + "/holds.json").value();
}

inline constexpr const char* kCpuMax = "100000 100000\n";
inline constexpr const char* kMemoryMax = "1073741824\n";
inline constexpr const char* kMemoryHigh = "max\n";

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
    if (recording.changes().size() == accepted) return;  // made to fail
    for (const Knob knob : {Knob::cpu_max, Knob::memory_high, Knob::cpu_weight})
      if (compare_knob(knob, asked, before) != 0)
        tree_.write(file(knob), std::string(format_knob(knob, asked)->view()) + "\n");
  }
  void submit_reclaim(CgroupId id, Bytes bytes) override { recording.submit_reclaim(id, bytes); }
  int result_fd() const override { return -1; }
  std::vector<LimitResult> drain_results() override { return recording.drain_results(); }
  RestoreReport restore_all() override {
    if (stuck != Knob::cpu_max) tree_.write(file(Knob::cpu_max), kCpuMax);
    if (stuck != Knob::memory_high) tree_.write(file(Knob::memory_high), kMemoryHigh);
    RestoreReport report = recording.restore_all();
    if (stuck) {
      report.left.push_back(*stuck);
      report.failures.push_back(std::string(file_name(*stuck)) + ": not put back");
    }
    return report;
  }
  RestoreReport restore(CgroupId) override { return restore_all(); }

  RecordingLimitWriter recording;
  std::optional<Knob> stuck;  // fails to be put back

 private:
  static std::string file(Knob knob) { return std::string("/test-a/") + file_name(knob); }
  const FakeTree& tree_;
};

// Tells of what the test says the kernel saw.
class ToldProbes final : public ProbeSource {
 public:
  std::vector<LimitWrite> drain_limit_writes() override { return std::exchange(writes, {}); }
  void set_wanted(bool now) override { wanted = now; }
  bool watch_programs(CgroupId, bool) override { return tells_programs; }
  void ignore_program(CgroupId, std::uint64_t key, bool ignored) override {
    if (ignored) ignored_programs.insert(key);
    else ignored_programs.erase(key);
  }
  std::vector<ProgramAct> drain_program_acts() override { return std::exchange(acts, {}); }
  bool reports_limit_reads() const override { return tells_reads; }
  std::shared_ptr<ProgramStarts> program_starts() override { return nullptr; }
  void fill_counters(NodeSample& tick) override {
    for (Sample& sample : tick.containers) sample.network.receive_bytes = received_bytes;
  }
  std::optional<RunQueueHistogram> run_queue_histogram(CgroupId) const override { return waits; }
  std::vector<Source> sources() const override { return {{"eBPF: told", false, "by a test"}}; }

  std::vector<LimitWrite> writes;
  bool wanted = false, tells_programs = false, tells_reads = true;
  std::vector<ProgramAct> acts;
  std::set<std::uint64_t> ignored_programs;
  Counter received_bytes;
  std::optional<RunQueueHistogram> waits;
};

// An agent over a tree with one container of 1 core and 1 GiB that uses a tenth of either.
class AgentWorld {
 public:
  AgentWorld() : config(quick_config(tree)) {
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
    tree.write("/test-a/memory.high", kMemoryHigh);
    tree.write("/test-a/memory.current", "104857600\n");
    tree.write("/test-a/memory.stat", "anon 104857600\nfile 0\nshmem 0\nkernel 0\nsock 0\n");
    tree.write("/test-a/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
    tree.write("/test-a/cgroup.events", "populated 1\nfrozen 0\n");
    write_cpu();
  }

  // With a history what it posts comes from another thread, and waits for hand_on().
  void start(std::unique_ptr<StoreThread> store = nullptr, const SafetyMemory& memory = {}) {
    agent.reset();
    writer = std::make_unique<TreeWriter>(tree);
    auto sampler = NodeSampler::open({.cgroup_root = tree.root(), .include = config.include});
    REQUIRE(sampler);
    auto core = Core::create({.policy = config.policy, .safety = config.safety,
                               .budget = config.budget, .cpu_lever = config.enforce.cpu},
                                     small_engine());
    core->set_safety_memory(memory);
    const bool inline_posts = store == nullptr;
    auto reported = std::make_unique<ToldProbes>();
    probes = reported.get();
    auto told_gpus = std::make_unique<ToldGpus>();
    gpus = told_gpus.get();
    agent.emplace(config,
                  Agent::Parts{.sampler = std::move(*sampler), .core = std::move(*core),
                               .writer = writer.get(), .probes = std::move(reported),
                               .gpu_scanner = std::make_unique<InlineGpuScanner>(tree.root(),
                                                                             config.proc_root),
                               .gpus = std::move(told_gpus),
                               .store = std::move(store), .history_locked = history_locked,
                               .model = {.engine = small_engine()},
                               .overrides = saved_overrides(tree),
                               .log = &change_log},
                  clock, [this, inline_posts](std::function<void()> work) {
                    if (inline_posts) return work();
                    const std::lock_guard lock(posted_mutex);
                    posted.push_back(std::move(work));
                  });
  }

  // What the history has posted, after all that it was asked so far.
  void hand_on() {
    std::promise<void> answered;
    REQUIRE(agent->store()->query([&](Store&) { answered.set_value(); }));
    answered.get_future().wait();
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(posted_mutex);
      work.swap(posted);
    }
    for (const auto& one : work) one();
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
    clock.advance(std::chrono::seconds(1));
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
           read_file(tree.root() + "/test-a/memory.high", 100).value() == kMemoryHigh;
  }
  const ContainerView& container() const { return *agent->core().containers().at(0); }

  FakeTree tree;
  Config config;
  ManualClock clock;
  bool history_locked = false;  // by another process, when the store was made
  std::unique_ptr<TreeWriter> writer;
  ToldProbes* probes = nullptr;  // the agent's
  ToldGpus* gpus = nullptr;      // the agent's
  ToldEntries reported;              // the log
  ChangeLog change_log{reported.teller()};
  std::mutex posted_mutex;  // before the agent, whose store posts until its end
  std::vector<std::function<void()>> posted;
  std::optional<Agent> agent;

 private:
  void write_cpu() const {
    tree.write("/test-a/cpu.stat", "usage_usec " + std::to_string(usage_usec) +
                                       "\nnr_periods " + std::to_string(periods) +
                                       "\nnr_throttled 0\nthrottled_usec 0\n");
  }
  std::uint64_t usage_usec = 0, periods = 0;
};

}  // namespace cgphase::test
