// An agent with a history on made-up files, that is asked as it is through its sockets.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "agent/answers.h"
#include "base/fd.h"
#include "protocol/history.h"
#include "tests/agent/agent_world.h"
#include "tests/agent/observers/inline_gpu_scanner.h"
#include "tests/collectors/fake_tree.h"
#include "tests/core/small_model.h"
#include "tests/protocol/wire.h"

namespace cgphase::test {

// A host of 4 cores and 1 GB, of which 300 MB are not available and 1 core is used, with one
// container of 2 cores and 100 MiB that uses 0.1 core, 1.9 when it is busy, and 50 MiB.
class AskedAgent {
 public:
  explicit AskedAgent(const char* policy = "phase") {
    tree.write("/cgroup.controllers", "cpu memory\n");
    tree.link("/proc/self", "2");  // or the pid of this test may be one of those below
    tree.write("/proc/stat", "cpu0 0\ncpu1 0\ncpu2 0\ncpu3 0\n");
    tree.write("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 700000 kB\n");
    tree.write("/test-a/cpu.max", "200000 100000\n");
    tree.write("/test-a/memory.max", "104857600\n");
    tree.write("/test-a/memory.high", "max\n");
    tree.write("/test-a/memory.stat", "anon 52428800\nfile 0\nshmem 0\nkernel 0\nsock 0\n");
    write_cpu();
    config.cgroup_root = tree.root();
    config.proc_root = tree.root() + "/proc";
    config.include = {"/test-*", "/test-*/inner", "/many/*/same"};
    config.kill_switch = tree.root() + "/disabled";
    config.policy = policy;
    auto sampler = NodeSampler::open({.cgroup_root = tree.root(), .proc_root = config.proc_root,
                                      .include = config.include});
    auto core = Core::create({.policy = policy}, small_engine());
    auto store = Store::open({.path = ":memory:", .boot_id = "boot-1"});
    REQUIRE(sampler);
    REQUIRE(core);
    REQUIRE(store);
    auto reported = std::make_unique<ToldProbes>();
    probes = reported.get();
    agent.emplace(config,
                  Agent::Parts{.sampler = std::move(*sampler), .core = std::move(*core),
                               .probes = std::move(reported),
                               .gpu_scanner = std::make_unique<InlineGpuScanner>(tree.root(),
                                                                             config.proc_root),
                               .store = std::make_unique<StoreThread>(std::move(*store)),
                               .model = {.engine = small_engine()},
                               .overrides = saved_overrides(tree)},
                  clock, post());
    answers.emplace(*agent, clock, post(), Answers::Facts{});
  }
  ~AskedAgent() { (void)agent->store_all(); }

  void run(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      agent->tick();
      clock.advance(std::chrono::seconds(1));
      container_usec += busy ? 1'900'000 : 100'000;
      root_usec += 1'000'000;
      write_cpu();
    }
  }

  // All that the container uses is used by another one in it.
  void nest() {
    nested = true;
    for (const char* file : {"cpu.max", "memory.max", "memory.stat"})
      tree.write(std::string("/test-a/inner/") + file,
                 read_file(tree.root() + "/test-a/" + file, 200).value());
    write_cpu();
  }

  // Waits for the thread that owns the store.
  nlohmann::json ask(const Request& request, uid_t uid = 0) {
    std::atomic<bool> done = false;
    nlohmann::json body;
    Peer peer;
    peer.uid = uid;
    answers->answer(request, peer, [&](nlohmann::json reply) {
      body = std::move(reply);
      done = true;
    });
    while (!done) std::this_thread::yield();
    return body;
  }

  FakeTree tree;
  Config config;
  ManualClock clock;
  ToldProbes* probes = nullptr;  // the agent's
  std::optional<Agent> agent;
  std::optional<Answers> answers;
  bool busy = false;

 private:
  // The store's thread may post as well: nothing else runs meanwhile.
  static Agent::Post post() {
    return [](std::function<void()> work) { work(); };
  }
  void write_cpu() const {
    for (const char* path : {"/test-a/cpu.stat", "/test-a/inner/cpu.stat"})
      if (nested || path == std::string("/test-a/cpu.stat"))
        tree.write(path, "usage_usec " + std::to_string(container_usec) + "\n");
    tree.write("/cpu.stat", "usage_usec " + std::to_string(root_usec) + "\n");
  }
  std::uint64_t container_usec = 0, root_usec = 0;
  bool nested = false;
};

inline Request fit(double cpus, double memory_mib) {
  return request_of(Verb::fit, {{"cpus", cpus}, {"memory_mib", memory_mib}, {"seconds", 600}});
}

// So many of one name.
inline void make_many(const AskedAgent& world, std::size_t containers) {
  for (std::size_t i = 0; i < containers; ++i)
    world.tree.make("/many/" + std::to_string(i) + "/same");
}

// What is asked is done at once, in this thread.
inline Answers answers_of(AgentWorld& world) {
  return {*world.agent, world.clock, [](auto work) { work(); }, {}};
}

// Of an agent without a store, which answers at once.
inline nlohmann::json acted(Answers& answers, Verb verb, nlohmann::json args) {
  nlohmann::json body;
  answers.answer(request_of(verb, std::move(args)), {},
                 [&](nlohmann::json reply) { body = std::move(reply); });
  return body;
}

}  // namespace cgphase::test
