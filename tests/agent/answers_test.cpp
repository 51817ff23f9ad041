// What the daemon answers out of its history and its policies: full pages, records, what was
// learned, and whether a job fits.
#include <ctime>

#include "tests/agent/asked_agent.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;
using std::chrono::seconds;

TEST_CASE("records and full pages tell all that was sampled, with originals and host") {
  AskedAgent world;
  world.run(30);
  const auto records = parse_records_page(world.ask(request_of(Verb::records)));
  REQUIRE(records);
  REQUIRE(records->size() == 1);
  CHECK(records->front().container.name == "test-a");
  CHECK(parse_records_page(world.ask(request_of(Verb::records, {{"after", 1}})))->empty());
  const json by_record =
      world.ask(request_of(Verb::history, {{"record", records->front().record}}));
  const auto points = parse_history_page(by_record);
  REQUIRE(points);
  REQUIRE(points->size() == 30);
  CHECK(points->back().sample.cpu.usage_usec == 2'900'000);
  CHECK(points->back().original.cpu_cores()->value == 2);
  CHECK(points->back().host.cpu_cores == 4);
  const json by_name =
      world.ask(request_of(Verb::history, {{"container", "test-a"}, {"full", true}}));
  CHECK(by_name == by_record);
  CHECK(world.ask(request_of(Verb::history, {{"container", "test-a"}})).contains("points"));
}

TEST_CASE("known tables are sent row by row from any row on, no others") {
  AskedAgent world;
  world.run(3);
  const auto ask = [&](const std::string& name, int after) {
    return world.ask(request_of(Verb::table, {{"name", name}, {"after", after}}));
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

TEST_CASE("what a run taught is reported for its container and name only") {
  AskedAgent world;
  world.run(60);
  const json one = world.ask(request_of(Verb::learned, {{"container", "test-a"}}));
  CHECK(one["policy"] == "phase");
  CHECK(one["learned"].is_object());
  const json image = world.ask(request_of(Verb::learned, {{"image", "test-a"}}));
  CHECK(image["learned"] == one["learned"]);
  CHECK(world.ask(request_of(Verb::learned, {{"image", "b"}}))["error"]["exit"] == 3);
  CHECK(world.ask(request_of(Verb::learned, {{"container", "b"}}))["error"]["exit"] == 3);
}

TEST_CASE("list and show have what programs count, null where they count nothing") {
  AskedAgent world;
  world.run(1);
  const auto shown = [&] { return world.ask(request_of(Verb::list))["containers"][0]; };
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
  const json shown = world.ask(request_of(Verb::show, {{"container", "test-a"}}));
  for (const char* part : {"now", "next"}) {
    CHECK(shown["bursts"][part].contains("network_receive"));
    CHECK(shown["bursts"][part]["network_receive"].is_null());
  }
  CHECK_FALSE(world.ask(request_of(Verb::list))["containers"][0].contains("bursts"));
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
  CHECK(world.ask(request_of(Verb::fit, {{"cpus", 1}, {"memory_mib", 1},
                                               {"seconds", 1e8}}))["error"]["exit"] == 2);
}

TEST_CASE("what is swapped out takes nothing off what is used outside of containers") {
  AskedAgent world("static");
  world.tree.write("/test-a/memory.swap.current", "31457280\n");
  world.run(2);
  // 300 MB less 50 MiB, and a bucket's width.
  CHECK(world.ask(fit(0.1, 1))["outside"]["memory_bytes"].get<double>() > 250e6);
}

TEST_CASE("a container in another is counted once, within what containers need and beside it") {
  AskedAgent world("static");
  world.nest();
  world.run(60);
  REQUIRE(world.agent->core().containers().size() == 2);
  const json reported = world.ask(fit(0.8, 100));
  CHECK(reported["fits"] == true);
  REQUIRE(reported["containers"].size() == 1);
  CHECK(reported["containers"][0]["name"] == "test-a");
  CHECK(reported["outside"]["cpu_cores"].get<double>() > 0.87);
  CHECK(reported["outside"]["memory_bytes"].get<double>() > 250e6);
}

TEST_CASE("list, show and explain tell what usually follows the phase, and when") {
  AskedAgent world;
  const json one = {{"container", "test-a"}};
  const auto next = [&] { return world.ask(request_of(Verb::show, one))["next"]; };
  world.run(1);
  CHECK(next().empty());
  for (int visit = 0; visit < 6; ++visit) {
    world.busy = visit % 2 == 1;
    world.run(20);
  }
  world.busy = false;
  world.run(5);
  const json reported = next();
  REQUIRE(reported.size() == 1);
  CHECK(reported[0]["phase"] == 1);
  CHECK(reported[0]["letter"] == "B");
  CHECK(reported[0]["probability"].get<double>() == doctest::Approx(1));
  CHECK(reported[0]["in_seconds"] > 10);
  CHECK(reported[0]["in_seconds"] <= 20);
  CHECK(world.ask(request_of(Verb::list))["containers"][0]["next"] == reported);
  CHECK(world.ask(request_of(Verb::explain, one))["container"]["next"] == reported);
  world.run(30);  // no visit before lasted so long
  REQUIRE(next().size() == 1);
  CHECK(next()[0]["phase"] == 1);
  CHECK(next()[0]["in_seconds"].is_null());
}

TEST_CASE("overhead is that of the last minutes, without what the start took") {
  AskedAgent world;
  const auto reported = [&] { return world.ask(request_of(Verb::status))["overhead_cpu_cores"]; };
  constexpr double kBurnt = 0.3;  // seconds of CPU: much more than the rest of this takes
  const auto burn = [] {
    const std::clock_t end =
        std::clock() + static_cast<std::clock_t>(kBurnt * static_cast<double>(CLOCKS_PER_SEC));
    while (std::clock() < end) {}
  };
  world.run(1);
  burn();
  CHECK(reported().is_null());
  world.answers->measure_overhead();
  world.clock.advance(seconds(9));
  CHECK(reported().is_null());
  world.clock.advance(seconds(1));
  CHECK(reported().get<double>() * 10 < kBurnt);
  burn();
  CHECK(reported().get<double>() * 10 >= kBurnt);
  for (int minute = 0; minute < 6; ++minute) {
    world.answers->measure_overhead();
    world.clock.advance(seconds(60));
  }
  CHECK(reported().get<double>() * 300 < kBurnt);
}

TEST_CASE("status names the program that made the model") {
  AskedAgent world;
  world.run(1);
  const auto made_by = [&] {
    return world.ask(request_of(Verb::status))["model"]["provenance"].get<std::string>();
  };
  CHECK(made_by() == "");
  Model model = small_model();
  model.provenance["program"] = "cgphase train 1.2";
  world.agent->take_model({.engine = PhaseEngine::create(model).value()});
  CHECK(made_by() == "cgphase train 1.2");
}

// rule: S-04
TEST_CASE("without a companion that lasts status, explain and a mode that is refused say so") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  Answers answers = answers_of(world);
  CHECK(answers.status().degraded.empty());
  world.agent->set_writable(false);
  world.run(3);
  const std::string why = "the dead-man companion ended, and none has lasted since";
  CHECK(answers.status().degraded ==
        std::vector{"only observing, with the original limits: " + why});
  const auto sentence = [&] {
    return acted(answers, Verb::explain, {{"container", "test-a"}})["sentence"].get<std::string>();
  };
  CHECK(sentence().ends_with(" Now: nothing is written, for " + why + "."));
  const json refused = acted(answers, Verb::mode, {{"mode", "enforce"}});
  CHECK(refused["error"]["exit"] == 1);
  CHECK(refused["error"]["text"] ==
        "mode: nothing is written now, for " + why + "; ask again in some seconds");
  acted(answers, Verb::mode, {{"container", "test-a"}, {"mode", "observe"}});
  CHECK_FALSE(sentence().ends_with(why + "."));  // its own mode is what holds it
  world.agent->set_writable(true);
  CHECK(answers.status().degraded.empty());
  CHECK(acted(answers, Verb::mode, {{"mode", "enforce"}})["done"].is_string());
}

TEST_CASE("without a store history says why there is none, and the way out") {
  AgentWorld world;
  world.run(1);
  const auto said = [&](std::vector<Source> sources) {
    Answers answers(*world.agent, world.clock, [](auto work) { work(); },
                    {.host_sources = std::move(sources)});
    json body;
    answers.answer(request_of(Verb::history, {{"container", "test-a"}}), {},
                   [&](json reply) { body = std::move(reply); });
    return body["error"]["text"].get<std::string>();
  };
  CHECK(said({}) == "history: the store is off (it was not opened)");
  CHECK(said({{"history", false, "history.db: schema 99 is newer"}}) ==
        "history: the store is off (history.db: schema 99 is newer); mend that, then restart the "
        "daemon");
}

TEST_CASE("explain finds a container that is gone, and earlier ones of its name") {
  AskedAgent world;
  world.run(2);
  const auto explain = [&](const char* name) {
    return world.ask(request_of(Verb::explain, {{"container", name}}));
  };
  // Of a time before what is kept nothing is known, and what is now does not tell of it.
  const json before = world.ask(
      request_of(Verb::explain, {{"container", "test-a"}, {"at_seconds", 1.0}}));
  CHECK(before["sentence"] == "test-a: no decision about it is kept from that time.");
  CHECK(explain("test-a")["sentence"].get<std::string>().find("no decision yet") !=
        std::string::npos);
  JournalDecision entry;
  entry.decision.decision_id = 7;
  entry.decision.container = world.agent->core().containers().at(0)->info.id;
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
    return world.ask(request_of(Verb::events, std::move(args)));
  };
  const json all = events(json::object());
  REQUIRE(all["events"].size() == 2);
  CHECK(all["events"][0]["name"] == "job");
  CHECK(all["events"][0]["decision"]["decision_id"] == 7);
  CHECK(all["events"][1]["outcome"]["decision_id"] == 7);
  CHECK(all["earlier"].is_null());
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
    const json reply = world.ask(request_of(Verb::events, args));
    pages.insert(pages.begin(), reply["events"].begin(), reply["events"].end());
    if (reply["earlier"].is_null()) break;
    args["before"] = reply["earlier"];
  }
  const json whole = world.ask(request_of(Verb::events))["events"];
  CHECK(json(pages) == whole);
  CHECK(whole.size() == 10);
}

TEST_CASE("history lists earlier containers of the name, and one that is gone") {
  AskedAgent world;
  restart_container(world);
  const auto history = [&](json args) {
    return world.ask(request_of(Verb::history, std::move(args)));
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
  CHECK(world.ask(request_of(Verb::status))["standing_down"] == "");
  world.tree.write("/proc/812/comm", "kubelet\n");
  CHECK(world.agent->reload(world.config).empty());
  world.run(1);
  const std::string why = "the kubelet manages limits here (pid 812)";
  const json status = world.ask(request_of(Verb::status));
  CHECK(status["standing_down"] == why);
  CHECK(status["degraded"][0] == "only observing, with the original limits: " + why);
  CHECK(status["containers"]["hands_off"] == 1);
  CHECK(status["containers"]["observe"] == 1);
  const json list = world.ask(request_of(Verb::list));
  CHECK(list["containers"][0]["hands_off"] == why);
  CHECK(list["containers"][0]["mode"] == "observe");
  const auto pin = [&](double cores) {
    return world.ask(request_of(Verb::pin, {{"container", "test-a"}, {"cpus", cores}}));
  };
  CHECK(pin(0.5)["error"]["text"] == "pin: test-a is never written to: " + why);
  CHECK_FALSE(world.agent->core().containers()[0]->pin.any());
  CHECK(pin(0)["done"] == "limits of test-a are as the policy has them");  // which may be asked for
  world.tree.remove("/proc/812");
  CHECK(world.agent->reload(world.config).empty());
  world.run(1);
  CHECK(world.ask(request_of(Verb::list))["containers"][0]["hands_off"] == "");
}

TEST_CASE("status names who kills on pressure") {
  AskedAgent world;
  world.tree.write("/proc/812/comm", "systemd-oomd\n");
  world.run(1);
  const json sources = world.ask(request_of(Verb::status))["sources"];
  CHECK(std::ranges::any_of(sources, [](const json& source) {
    return source["name"] == "neighbours" && source["present"] == true &&
           source["detail"] == "systemd-oomd kills on memory pressure (pid 812)";
  }));
}
