// What runs taught, between the agent and its history.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "policy/safety/safety_memory_json.h"
#include "storage/sqlite.h"
#include "storage/store.h"
#include "tests/agent/agent_world.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// While it lives no file grows beyond a KiB: a database is refused, what FakeTree writes is not.
class SmallFiles {
 public:
  SmallFiles() : before_(::signal(SIGXFSZ, SIG_IGN)) { set(1024); }
  ~SmallFiles() {
    set(RLIM_INFINITY);
    ::signal(SIGXFSZ, before_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  static void set(rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  sighandler_t before_;
};

// An agent with a history, whose answers come too late: none is handed on.
struct LateAnswers {
  LateAnswers() { world.config.policy = "autopilot"; }

  void start(const StoreThread::Options& options = {}) {
    world.start(std::make_unique<StoreThread>(Store::open(history).value(), options));
  }
  // Runs of what the file knows after the agent has stopped.
  int runs_at_end() {
    REQUIRE(world.agent->store_all().has_value());
    world.agent.reset();
    return Store::open(history)->load_learned(key).value().at("runs").get<int>();
  }

  // Runs that the agent knows of the container's image, with the current one.
  int known_runs() {
    return std::get<LearnedUsage>(world.agent->learning().learned(world.container())).runs;
  }
  // Containers of one image.
  void make_same(int count) {
    world.config.include.push_back("/many/*/same");
    for (int i = 0; i < count; ++i) {
      const std::string path = "/many/" + std::to_string(i) + "/same";
      world.tree.write(path + "/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\n");
      world.tree.write(path + "/cgroup.events", "populated 1\nfrozen 0\n");
    }
  }

  AgentWorld world;
  const Store::Options history{.path = world.tree.root() + "/history.db", .boot_id = "boot"};
  const std::string key = "test-a#" + model_key(small_engine().get());
  const std::string same = "same#" + model_key(small_engine().get());
};

}  // namespace

TEST_CASE("a run is added to what earlier ones taught, though that did not come in time") {
  LateAnswers late;
  late.start();
  late.world.run(30);
  CHECK(late.runs_at_end() == 1);
  late.start();
  late.world.run(1);
  late.world.restart_container();
  late.world.run(30);
  late.world.restart_container();
  late.world.run(30);
  CHECK(late.runs_at_end() >= 3);
}

TEST_CASE("what a run taught outlives a daemon that is killed, and is one run") {
  LateAnswers late;
  late.start();
  late.world.run(601);  // ten minutes: two checkpoints
  late.world.hand_on();
  late.world.agent.reset();  // nothing is saved at such an end
  late.start();
  late.world.run(1);
  late.world.hand_on();
  CHECK(late.world.container().recommendation.earlier_runs == 0);
  late.world.run(30);
  CHECK(late.world.container().recommendation.earlier_runs == 1);
  CHECK(late.runs_at_end() == 2);
}

TEST_CASE("what is saved of a run that goes on is no run before it ends") {
  LateAnswers late;
  late.start();
  late.world.run(601);
  late.world.hand_on();
  CHECK(late.known_runs() == 1);
  late.world.restart_container();
  late.world.hand_on();
  CHECK(late.world.container().recommendation.earlier_runs == 1);
  late.world.run(400);
  CHECK(late.runs_at_end() == 2);
}

TEST_CASE("runs of one image that go on side by side are saved each, and counted once") {
  LateAnswers late;
  late.make_same(2);
  late.start();
  late.world.run(601);  // two checkpoints
  late.world.hand_on();
  late.world.agent.reset();  // as if it was killed
  late.start();
  late.world.run(601);
  CHECK(late.runs_at_end() == 2);
  CHECK(Store::open(late.history)->load_learned(late.same).value().at("runs") == 4);
}

TEST_CASE("a run that the disk refuses is added when it takes it again") {
  for (const bool known : {false, true}) {
    CAPTURE(known);
    LateAnswers late;
    late.start();
    late.world.run(30);
    if (known) {  // an earlier run, which the agent has heard of
      late.world.restart_container();
      late.world.hand_on();
      late.world.run(30);
    }
    {
      const SmallFiles refused;
      late.world.restart_container();
      late.world.hand_on();
    }
    late.world.run(30);
    late.world.hand_on();
    CHECK(late.runs_at_end() == (known ? 3 : 2));
  }
}

TEST_CASE("a run that the disk refuses is known to the next one all the same, and counted once") {
  for (const int before : {0, 1}) {
    CAPTURE(before);
    LateAnswers late;
    if (before == 1) {  // of another daemon; this one hears of it late
      late.start();
      late.world.run(30);
      CHECK(late.runs_at_end() == 1);
    }
    late.start();
    late.world.run(30);
    {
      const SmallFiles refused;
      late.world.restart_container();
      CHECK(late.world.container().recommendation.earlier_runs == 1);
      late.world.hand_on();
      late.world.run(1);
      CHECK(late.world.container().recommendation.earlier_runs == before + 1);
    }
    late.world.run(30);
    late.world.hand_on();
    CHECK(late.known_runs() == before + 2);
    CHECK(late.runs_at_end() == before + 2);
  }
}

TEST_CASE("bursts of a run that the disk refuses foretell the next one all the same") {
  LateAnswers late;
  late.start();
  std::uint64_t received = 0;
  for (int i = 0; i < 200; ++i) {  // idle for 15 of each 20 s
    if (i % 20 >= 15) received += 1000;
    late.world.probes->received_bytes = received;
    late.world.tick();
  }
  const SmallFiles refused;
  late.world.restart_container();
  late.world.hand_on();
  const auto known = late.world.agent->bursts(late.world.container());
  CHECK_FALSE(known.at("next").at("network_receive").is_null());
}

TEST_CASE("runs of one image that end together are one write") {
  LateAnswers late;
  late.world.config.mode = Mode::observe;  // what else is remembered is of lowered limits
  constexpr int kMany = 5;
  late.make_same(kMany);
  late.start();
  late.world.run(30);
  CHECK(late.runs_at_end() == 1);
  Store store = Store::open(late.history).value();
  CHECK(store.load_learned(late.same).value().at("runs") == kMany);
  // Each write has a number of its own.
  const TablePage saved = store.table_page("learned", 0).value();
  REQUIRE(saved.rows.size() >= 2);
  CHECK(std::get<std::int64_t>(saved.rows.back().at(0)) == std::ssize(saved.rows));
}

TEST_CASE("what waits for the disk is of containers that live") {
  LateAnswers late;
  late.start({.query_bound = 0});
  for (int i = 0; i < 20; ++i) late.world.restart_container();
  CHECK(late.world.agent->learning().requested_priors() == 1);
}

TEST_CASE("many containers that appear at once, or are there at the stop, are a few queries") {
  LateAnswers late;
  constexpr int kMany = 40;
  for (int i = 0; i < kMany; ++i) {
    const std::string path = "/test-" + std::to_string(i);
    late.world.tree.write(path + "/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\n");
    late.world.tree.write(path + "/cgroup.events", "populated 1\nfrozen 0\n");
  }
  late.start({.query_bound = 8});
  late.world.run(3);
  CHECK(late.world.agent->core().containers().size() == kMany + 1);
  CHECK(late.world.agent->store()->counts().refused_queries == 0);
  REQUIRE(late.world.agent->store_all().has_value());
  CHECK(late.world.agent->store()->counts().refused_queries == 0);
}

TEST_CASE("each sample is stored once, the last one too") {
  LateAnswers late;
  late.start();
  late.world.run(12);
  REQUIRE(late.world.agent->store_all().has_value());
  const CgroupId id = late.world.container().info.id;
  late.world.agent.reset();
  Store store = Store::open(late.history).value();
  CHECK(store.history(id, WallTime(), WallTime::max(), 100)->size() == 12);
}

TEST_CASE("without a history what is journaled does not pile up") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(2);
  CHECK_FALSE(world.agent->journal().recent_decisions().empty());
  CHECK(world.agent->journal().unsaved_decisions().empty());
  CHECK(world.agent->journal().unsaved_outcomes().empty());
}

TEST_CASE("what a locked history knows takes effect when it is free, and is not overwritten") {
  AgentWorld world;
  const std::string path = world.tree.root() + "/history.db";
  const Store::Options options{.path = path, .boot_id = "boot"};
  {
    SafetyMemory memory;
    for (const Resource resource : {Resource::cpu, Resource::memory})
      memory.quarantines.keep("test-a", resource, std::chrono::hours(24), world.clock.wall_now());
    memory.ooms.remember("test-a", {.measured_bytes = 6e8, .limit_bytes = 0},
                         world.clock.wall_now());
    Store before = Store::open(options).value();
    REQUIRE(before.save_learned(kSafetyMemoryName, safety_memory_to_json(memory)));
  }
  std::optional<Connection> lock = Connection::open(path).value();
  REQUIRE(lock->execute("BEGIN EXCLUSIVE"));
  Store::Options waiting = options;
  waiting.wait_for_lock_since = world.clock.wall_now();
  world.history_locked = true;
  world.start(std::make_unique<StoreThread>(Store::open(waiting).value()));
  REQUIRE(world.run_until_lowered());
  CHECK(world.agent->learning().requested_priors() == 1);  // asked for when it can be read
  CHECK(world.agent->core().safety_memory().quarantines.size() == 0);

  lock.reset();
  for (int i = 0; i < 3; ++i) {  // one answer from before is still on its way
    world.tick();
    world.hand_on();
  }
  world.run(5);
  CHECK(world.agent->learning().requested_priors() == 0);
  CHECK(world.container().memory_blocked_by == Verdict::quarantined);
  CHECK(world.container().cpu_blocked_by == Verdict::quarantined);
  CHECK(world.original());
  const WallTime now = world.clock.wall_now();
  CHECK(world.agent->core().safety_memory().ooms.floor_bytes("test-a", now) > 6e8);
  REQUIRE(world.agent->store_all().has_value());
  world.agent.reset();
  Store after = Store::open(options).value();
  const auto kept = safety_memory_from_json(after.load_learned(kSafetyMemoryName).value());
  REQUIRE(kept);
  CHECK(kept->quarantines.left("test-a", Resource::memory, now) > std::chrono::hours(23));
  CHECK_FALSE(after.events(std::nullopt, {.limit = 100}).value().empty());
}
