// What the daemon answers out of its history and its policies: full pages, records, what was
// learned, and whether a job fits.
#include "agent/answers.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "agent/protocol_history.h"
#include "base/fd.h"
#include "tests/agent/agent_world.h"
#include "tests/agent/inline_gpu_looks.h"
#include "tests/agent/small_model.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;
using nlohmann::json;
using std::chrono::seconds;

namespace {

// A host of 4 cores and 1 GB, of which 300 MB are not available and 1 core is used, with one
// container of 2 cores and 100 MiB that uses 0.1 core and 50 MiB.
class AskedAgent {
 public:
  explicit AskedAgent(const char* policy = "phase") {
    tree.write("/cgroup.controllers", "cpu memory\n");
    tree.link("/proc/self", "2");  // or the pid of this test may be one of those below
    tree.write("/proc/stat", "cpu0 0\ncpu1 0\ncpu2 0\ncpu3 0\n");
    tree.write("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 700000 kB\n");
    tree.write("/test-a/cpu.max", "200000 100000\n");
    tree.write("/test-a/memory.max", "104857600\n");
    tree.write("/test-a/memory.stat", "anon 52428800\nfile 0\nshmem 0\nkernel 0\nsock 0\n");
    write_cpu();
    config.cgroup_root = tree.root();
    config.proc_root = tree.root() + "/proc";
    config.include = {"/test-*", "/many/*/same"};
    config.kill_switch = tree.root() + "/disabled";
    config.policy = policy;
    auto sampler = NodeSampler::open({.cgroup_root = tree.root(), .proc_root = config.proc_root,
                                      .include = config.include});
    auto pipeline = Pipeline::create({.policy = policy}, small_engine());
    auto store = Store::open({.path = ":memory:", .boot_id = "boot-1"});
    REQUIRE(sampler);
    REQUIRE(pipeline);
    REQUIRE(store);
    auto told = std::make_unique<ToldProbes>();
    probes = told.get();
    agent.emplace(config,
                  Agent::Parts{.sampler = std::move(*sampler), .pipeline = std::move(*pipeline),
                               .probes = std::move(told),
                               .gpu_looks = std::make_unique<InlineGpuLooks>(tree.root(),
                                                                             config.proc_root),
                               .store = std::make_unique<StoreThread>(std::move(*store)),
                               .model = {.engine = small_engine()},
                               .holds = Holds::load(tree.root() + "/holds.json").value()},
                  clock, post());
    answers.emplace(*agent, clock, post(), Answers::Facts{});
  }
  ~AskedAgent() { (void)agent->store_all(); }

  void run(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      agent->tick();
      clock.advance(seconds(1));
      container_usec += 100'000;
      root_usec += 1'000'000;
      write_cpu();
    }
  }

  // Waits for the thread that owns the store.
  json ask(const Request& request, uid_t uid = 0) {
    std::atomic<bool> done = false;
    json body;
    Peer peer;
    peer.uid = uid;
    answers->answer(request, peer, [&](json reply) {
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

 private:
  // The store's thread may post as well: nothing else runs meanwhile.
  static Agent::Post post() {
    return [](std::function<void()> work) { work(); };
  }
  void write_cpu() const {
    tree.write("/test-a/cpu.stat", "usage_usec " + std::to_string(container_usec) + "\n");
    tree.write("/cpu.stat", "usage_usec " + std::to_string(root_usec) + "\n");
  }
  std::uint64_t container_usec = 0, root_usec = 0;
};

Request fit(double cpus, double memory_mib) {
  return {.verb = Verb::fit,
          .args = {{"cpus", cpus}, {"memory_mib", memory_mib}, {"seconds", 600}}};
}

bool asked_too_much(const json& reply) {
  return reply.value(json::json_pointer("/error/text"), "").ends_with("ask again in a second");
}

// So many of one name.
void make_many(const AskedAgent& world, std::size_t containers) {
  for (std::size_t i = 0; i < containers; ++i)
    world.tree.make("/many/" + std::to_string(i) + "/same");
}

// How often one user is answered before the first refusal.
std::size_t answered(AskedAgent& world, const Request& request, uid_t uid) {
  std::size_t count = 0;
  while (count < 1000 && !asked_too_much(world.ask(request, uid))) ++count;
  return count;
}

}  // namespace

TEST_CASE("records and full pages tell all that was sampled, with originals and host") {
  AskedAgent world;
  world.run(30);
  const auto records = parse_records_page(world.ask({.verb = Verb::records}));
  REQUIRE(records);
  REQUIRE(records->size() == 1);
  CHECK(records->front().container.name == "test-a");
  CHECK(parse_records_page(world.ask({.verb = Verb::records, .args = {{"after", 1}}}))->empty());
  const json by_record = world.ask({.verb = Verb::history,
                                    .args = {{"record", records->front().record}}});
  const auto points = parse_history_page(by_record);
  REQUIRE(points);
  REQUIRE(points->size() == 30);
  CHECK(points->back().sample.cpu.usage_usec == 2'900'000);
  CHECK(points->back().original.cpu_cores()->value == 2);
  CHECK(points->back().host.cpu_cores == 4);
  const json by_name = world.ask({.verb = Verb::history,
                                  .args = {{"container", "test-a"}, {"full", true}}});
  CHECK(by_name == by_record);
  CHECK(world.ask({.verb = Verb::history, .args = {{"container", "test-a"}}}).contains("points"));
}

TEST_CASE("the tables are told row by row from any row on, and no others") {
  AskedAgent world;
  world.run(3);
  const auto ask = [&](const std::string& name, int after) {
    return world.ask({.verb = Verb::table, .args = {{"name", name}, {"after", after}}});
  };
  const auto page = parse_table_reply(ask("container", 0));
  REQUIRE(page);
  REQUIRE(page->rows.size() == 1);
  CHECK(page->columns.front() == TableColumn{"container", "INTEGER"});
  CHECK(page->rows.front().front() == SqlValue(std::int64_t{1}));
  CHECK(parse_table_reply(ask("container", 1))->rows.empty());
  CHECK(ask("block", 0)["error"]["exit"] == static_cast<int>(Exit::invalid));
  CHECK(ask("sqlite_schema", 0).contains("error"));
}

TEST_CASE("what a container's run taught is told of it and of its name, and nothing of others") {
  AskedAgent world;
  world.run(60);
  const json one = world.ask({.verb = Verb::learned, .args = {{"container", "test-a"}}});
  CHECK(one["policy"] == "phase");
  CHECK(one["learned"].is_object());
  const json image = world.ask({.verb = Verb::learned, .args = {{"image", "test-a"}}});
  CHECK(image["learned"] == one["learned"]);
  CHECK(world.ask({.verb = Verb::learned, .args = {{"image", "b"}}})["error"]["exit"] == 3);
  CHECK(world.ask({.verb = Verb::learned, .args = {{"container", "b"}}})["error"]["exit"] == 3);
}

TEST_CASE("list and show have what programs count, null where they count nothing") {
  AskedAgent world;
  world.run(1);
  const auto shown = [&] { return world.ask({.verb = Verb::list})["containers"][0]; };
  CHECK(shown()["network"]["receive_bytes"].is_null());
  CHECK(shown()["run_queue"]["histogram"].is_null());
  world.probes->received_bytes = 4096;
  world.probes->waits = RunQueueHistogram{5, 7};
  world.run(1);
  CHECK(shown()["network"]["receive_bytes"] == 4096);
  CHECK(shown()["network"]["transmit_bytes"].is_null());
  CHECK(shown()["run_queue"]["histogram"][1] == 7);
}

TEST_CASE("show has the bursts of a container, null for what nothing on the host counts") {
  AskedAgent world;
  world.run(3);
  const json shown = world.ask({.verb = Verb::show, .args = {{"container", "test-a"}}});
  for (const char* part : {"now", "next"}) {
    CHECK(shown["bursts"][part].contains("network_receive"));
    CHECK(shown["bursts"][part]["network_receive"].is_null());
  }
  CHECK_FALSE(world.ask({.verb = Verb::list})["containers"][0].contains("bursts"));
}

TEST_CASE("a job fits into the host less reserve, outside use and what containers may need") {
  AskedAgent world("static");
  world.run(60);
  const json yes = world.ask(fit(0.8, 100));
  CHECK(yes["fits"] == true);
  CHECK(yes["containers"][0]["cpu_cores"]["basis"] == "limit");
  CHECK(yes["outside"]["cpu_cores"].get<double>() == doctest::Approx(0.9).epsilon(0.06));
  // 4 cores - 0.2 in reserve - 0.9 outside - 2 of the container's limit, and a bucket's width.
  CHECK(yes["free"]["cpu_cores"].get<double>() == doctest::Approx(0.9).epsilon(0.1));
  CHECK(world.ask(fit(1.2, 100))["fits"] == false);
  CHECK(world.ask(fit(0.1, 2000))["fits"] == false);
  CHECK(world.ask({.verb = Verb::fit, .args = {{"cpus", 1}, {"memory_mib", 1},
                                               {"seconds", 1e8}}})["error"]["exit"] == 2);
}

TEST_CASE("between two ticks the same question has one answer, and few others are weighed") {
  AskedAgent world("static");
  world.run(60);
  const json first = world.ask(fit(0.1, 1));
  for (std::size_t i = 1; i < Answers::kMostFits; ++i)
    CHECK(world.ask(fit(0.1 + static_cast<double>(i), 1)).contains("fits"));
  const json refused = world.ask(fit(0.2, 1));
  CHECK(refused["error"]["exit"] == 1);
  CHECK(refused["error"]["text"].get<std::string>().find("ask again in a second") !=
        std::string::npos);
  CHECK(world.ask(fit(0.1, 1)) == first);
  world.run(1);
  CHECK(world.ask(fit(0.2, 1)).contains("fits"));
}

TEST_CASE("what one user may ask is not used up by another, and is of a second, not of a tick") {
  constexpr uid_t kGreedy = 1000, kOther = 1001;
  AskedAgent world("static");
  world.run(60);
  for (std::size_t i = 0; i < Answers::kMostFits; ++i)
    CHECK(world.ask(fit(0.1 + static_cast<double>(i), 1), kGreedy).contains("fits"));
  CHECK(world.ask(fit(0.2, 1), kGreedy)["error"]["exit"] == 1);
  CHECK(world.ask(fit(0.2, 1), kOther).contains("fits"));
  CHECK(world.ask(fit(0.3, 1)).contains("fits"));
  CHECK(world.ask(fit(0.2, 1), kGreedy).contains("fits"));  // weighed already, for another
  world.clock.advance(std::chrono::milliseconds(500));
  world.agent->tick();
  CHECK(world.ask(fit(0.4, 1), kGreedy)["error"]["exit"] == 1);
  world.clock.advance(std::chrono::milliseconds(500));
  CHECK(world.ask(fit(0.4, 1), kGreedy).contains("fits"));
}

TEST_CASE("a question that is refused for its words costs nothing") {
  AskedAgent world("static");
  world.run(60);
  for (std::size_t i = 0; i <= Answers::kMostFits; ++i)
    CHECK(world.ask({.verb = Verb::fit, .args = {{"cpus", i}, {"memory_mib", 1},
                                                 {"seconds", 1e8}}})["error"]["exit"] == 2);
  CHECK(world.ask(fit(0.2, 1)).contains("fits"));
}

TEST_CASE("of what is heavy one user is answered only so much within a second, and each as much") {
  constexpr uid_t kGreedy = 1000, kOther = 1001;
  AskedAgent world;
  world.run(1);
  const json one = {{"container", "test-a"}};
  const std::pair<Request, std::size_t> most[] = {{{.verb = Verb::status}, 256},
                                                  {{.verb = Verb::list}, 128},
                                                  {{.verb = Verb::show, .args = one}, 256},
                                                  {{.verb = Verb::learned, .args = one}, 66}};
  for (const auto& [request, count] : most) {
    CAPTURE(to_string(request.verb));
    CHECK(answered(world, request, kGreedy) == count);
    CHECK(world.ask(request, kGreedy)["error"]["exit"] == 1);
    CHECK_FALSE(asked_too_much(world.ask(request, kOther)));
  }
  world.clock.advance(seconds(1));
  for (const auto& [request, count] : most)
    CHECK_FALSE(asked_too_much(world.ask(request, kGreedy)));
}

TEST_CASE("the more containers there are, the fewer lists one user is answered within a second") {
  AskedAgent world;
  make_many(world, 255);
  world.run(1);
  REQUIRE(world.agent->pipeline().containers().size() == 256);
  CHECK(answered(world, {.verb = Verb::list}, 1000) == 32);
}

TEST_CASE("what runs of one image taught is added up only so often, and of not too many") {
  const Request same{.verb = Verb::learned, .args = {{"image", "same"}}};
  AskedAgent world;
  make_many(world, Answers::kMostLearned / 2 + 1);
  world.run(1);
  CHECK(answered(world, same, 1000) == 1);
  CHECK(answered(world, same, 1001) == 1);
  world.clock.advance(seconds(1));
  make_many(world, Answers::kMostLearned);
  world.run(1);
  CHECK(answered(world, same, 1000) == 1);
  world.tree.make("/many/more/same");
  world.run(1);
  CHECK(world.ask(same)["error"]["text"] == "learned: more containers of the image 'same' run than "
                                            "are added up at once, 400; ask for one of them");
}

TEST_CASE("a second that answers took up themselves makes no room for more of them") {
  AgentWorld world;
  world.run(1);
  std::vector<std::function<void()>> posted;
  Answers answers(*world.agent, world.clock, [&](auto work) { posted.push_back(std::move(work)); },
                  {});
  const auto refused = [&] {
    json body;
    answers.answer({.verb = Verb::show, .args = {{"container", "test-a"}}}, {},
                   [&](json reply) { body = std::move(reply); });
    return asked_too_much(body);
  };
  const auto come_round = [&] {
    for (const auto& work : std::exchange(posted, {})) work();
  };
  while (!refused()) {}
  world.clock.advance(seconds(5));
  CHECK(refused());
  come_round();  // what was due comes with this one, and behind it what it posts
  CHECK(refused());
  come_round();
  CHECK_FALSE(refused());
}

TEST_CASE("undo is what takes an action back, and empty where nothing changed") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  Answers answers(*world.agent, world.clock, [](auto work) { work(); }, {});
  const auto act = [&](Verb verb, const json& args) {
    json body;
    answers.answer({.verb = verb, .args = args}, {}, [&](json reply) { body = std::move(reply); });
    return body;
  };
  const json one = {{"container", "test-a"}};
  const json paused = act(Verb::pause, one);
  CHECK(paused["undo"] == "cgphase resume test-a");
  CHECK(paused["changes"].size() == 1);  // its limits were put back
  CHECK(world.original());
  CHECK(act(Verb::pause, one)["undo"] == "");
  // A pause is no mode: what is undone is the mode that it has without.
  CHECK(act(Verb::mode, {{"container", "test-a"}, {"mode", "advise"}})["undo"] ==
        "cgphase mode enforce test-a");
  CHECK(act(Verb::mode, {{"container", "test-a"}, {"mode", "advise"}})["undo"] == "");
  const json all = act(Verb::mode, {{"mode", "observe"}});
  CHECK(all["undo"] == "cgphase mode enforce");
  CHECK(all["changes"][0] == "the mode of test-a itself, advise, ends: cgphase mode advise test-a");
  CHECK(act(Verb::mode, {{"mode", "observe"}})["undo"] == "");
  CHECK(act(Verb::restore, {{"all", true}})["undo"] == "");
  CHECK(act(Verb::restore, one)["undo"] == "");  // paused it is still
  CHECK(act(Verb::resume, one)["undo"] == "cgphase pause test-a");
  CHECK(act(Verb::restore, one)["undo"] == "cgphase resume test-a");
}

TEST_CASE("without a store history says why there is none, and the way out") {
  AgentWorld world;
  world.run(1);
  const auto said = [&](std::vector<Source> sources) {
    Answers answers(*world.agent, world.clock, [](auto work) { work(); },
                    {.host_sources = std::move(sources)});
    json body;
    answers.answer({.verb = Verb::history, .args = {{"container", "test-a"}}}, {},
                   [&](json reply) { body = std::move(reply); });
    return body["error"]["text"].get<std::string>();
  };
  CHECK(said({}) == "history: the store is off (store.enabled = false)");
  CHECK(said({{"history", false, "history.db: schema 99 is newer"}}) ==
        "history: the store is off (history.db: schema 99 is newer); mend that, then restart the "
        "daemon");
}

TEST_CASE("explain tells of a container that is gone, and of earlier ones of its name") {
  AskedAgent world;
  world.run(2);
  const auto explain = [&](const char* name) {
    return world.ask({.verb = Verb::explain, .args = {{"container", name}}});
  };
  // Of a time before what is kept nothing is known, and what is now does not tell of it.
  const json before = world.ask(
      {.verb = Verb::explain, .args = {{"container", "test-a"}, {"at_seconds", 1.0}}});
  CHECK(before["sentence"] == "test-a: no decision about it is kept from that time.");
  CHECK(explain("test-a")["sentence"].get<std::string>().find("no decision yet") !=
        std::string::npos);
  JournalDecision entry;
  entry.decision.decision_id = 7;
  entry.decision.container = world.agent->pipeline().containers().at(0)->info.id;
  entry.time = world.clock.wall_now();
  world.agent->store()->enqueue({.decisions = {entry}});
  CHECK(explain("test-a")["gone"] == false);
  world.tree.remove("/test-a");
  world.agent->tick();
  const json gone = explain("test-a");
  CHECK(gone["gone"] == true);
  REQUIRE(gone["decisions"].size() == 1);
  CHECK(gone["decisions"][0]["decision"]["decision_id"] == 7);
  CHECK(explain("nobody").contains("error"));
  world.tree.write("/test-a/cpu.max", "200000 100000\n");  // another cgroup, the same name
  world.agent->tick();
  const json again = explain("test-a");
  CHECK(again["gone"] == false);
  CHECK(again["decisions"].size() == 1);
}

namespace {

// Runs `world`, and ends its container and starts one of its name again.
void restart_container(AskedAgent& world) {
  world.run(30);
  // As long as it is open nothing else gets its inode.
  const Fd old(::open((world.tree.root() + "/test-a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  world.tree.remove("/test-a");
  world.run(1);
  world.tree.write("/test-a/cpu.max", "200000 100000\n");
  world.run(20);
}

// What a run of the daemon before this one left: a decision of `name` under an id of another boot.
void add_earlier_run(AskedAgent& world, const std::string& name, std::uint64_t decision_id) {
  ContainerInfo earlier;
  earlier.id = {999, 1};
  earlier.name = name;
  JournalDecision entry;
  entry.decision.decision_id = decision_id;
  entry.decision.container = earlier.id;
  entry.time = world.clock.wall_now() - seconds(3600);
  JournalOutcome outcome{entry.time + seconds(1), {}};
  outcome.outcome.decision_id = decision_id;
  outcome.outcome.container = earlier.id;
  world.agent->store()->enqueue({.containers = {{earlier, entry.time}}, .decisions = {entry},
                                 .outcomes = {outcome}});
}

}  // namespace

TEST_CASE("events tell of decisions and outcomes of earlier runs of the daemon, by name too") {
  AskedAgent world;
  world.run(2);
  add_earlier_run(world, "job", 7);
  const auto events = [&](json args) {
    return world.ask({.verb = Verb::events, .args = std::move(args)});
  };
  const json all = events(json::object());
  REQUIRE(all["events"].size() == 2);
  CHECK(all["events"][0]["name"] == "job");
  CHECK(all["events"][0]["decision"]["decision_id"] == 7);
  CHECK(all["events"][1]["outcome"]["decision_id"] == 7);
  CHECK(all["earlier"].is_null());
  CHECK_FALSE(all.contains("unreadable"));
  CHECK(events({{"container", "job"}})["events"].size() == 2);
  CHECK(events({{"container", "test-a"}})["events"].empty());
  CHECK(events({{"container", "nobody"}})["error"]["exit"] == 3);
  CHECK(events({{"before", "x"}})["error"]["exit"] == 6);
}

TEST_CASE("events come page by page, the newest first, and say where the page before begins") {
  AskedAgent world;
  world.run(1);
  for (std::uint64_t id = 1; id <= 5; ++id) add_earlier_run(world, "job", id);
  std::vector<json> pages;
  json args = {{"limit", 4}};
  for (int page = 0; page < 4; ++page) {
    const json reply = world.ask({.verb = Verb::events, .args = args});
    pages.insert(pages.begin(), reply["events"].begin(), reply["events"].end());
    if (reply["earlier"].is_null()) break;
    args["before"] = reply["earlier"];
  }
  const json whole = world.ask({.verb = Verb::events})["events"];
  CHECK(json(pages) == whole);
  CHECK(whole.size() == 10);
}

TEST_CASE("history tells who had the name before, and of a container that is gone") {
  AskedAgent world;
  restart_container(world);
  const auto history = [&](json args) {
    return world.ask({.verb = Verb::history, .args = std::move(args)});
  };
  const json now = history({{"container", "test-a"}});
  CHECK(now["points"].size() == 20);
  CHECK(now["gone"] == false);
  REQUIRE(now["earlier"].size() == 1);
  const json run = now["earlier"][0];
  CHECK(run["container"]["name"] == "test-a");
  CHECK(run["first_seen"].get<double>() < now["first_seen"].get<double>());
  const json before = history({{"record", run["record"]}, {"rows", true}});
  CHECK(before["points"].size() == 30);
  CHECK(before["container"] == run["container"]);
  CHECK(before["points"][29]["time"] < now["points"][0]["time"]);
  CHECK(history({{"record", 77}, {"rows", true}})["error"]["exit"] == 3);
  const double first = now["points"][0]["time"].get<double>();
  CHECK(history({{"container", "test-a"}, {"from_seconds", first}})["earlier"].empty());
  world.tree.remove("/test-a");
  world.run(1);
  const json gone = history({{"container", "test-a"}});
  CHECK(gone["gone"] == true);
  CHECK(gone["points"] == now["points"]);
  CHECK(history({{"container", "nobody"}})["error"]["exit"] == 3);
}

TEST_CASE("beside another manager of limits status, list and show say why nothing is written") {
  AskedAgent world;
  world.run(1);
  CHECK(world.ask({.verb = Verb::status})["standing_down"] == "");
  world.tree.write("/proc/812/comm", "kubelet\n");
  CHECK(world.agent->reload(world.config).empty());
  world.run(1);
  const std::string why = "the kubelet manages limits here (pid 812)";
  const json status = world.ask({.verb = Verb::status});
  CHECK(status["standing_down"] == why);
  CHECK(status["degraded"][0] == "only observing, with the original limits: " + why);
  CHECK(status["containers"]["hands_off"] == 1);
  CHECK(status["containers"]["observe"] == 1);
  const json list = world.ask({.verb = Verb::list});
  CHECK(list["containers"][0]["hands_off"] == why);
  CHECK(list["containers"][0]["mode"] == "observe");
  world.tree.remove("/proc/812");
  CHECK(world.agent->reload(world.config).empty());
  world.run(1);
  CHECK(world.ask({.verb = Verb::list})["containers"][0]["hands_off"] == "");
}

TEST_CASE("status names who kills on pressure") {
  AskedAgent world;
  world.tree.write("/proc/812/comm", "systemd-oomd\n");
  world.run(1);
  const json sources = world.ask({.verb = Verb::status})["sources"];
  CHECK(std::ranges::any_of(sources, [](const json& source) {
    return source["name"] == "neighbours" && source["present"] == true &&
           source["detail"] == "systemd-oomd kills on memory pressure (pid 812)";
  }));
}
