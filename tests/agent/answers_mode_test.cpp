// What the verbs that act answer: what is different now, what stands in the way, the undo.
#include <algorithm>
#include <fstream>

#include "tests/agent/asked_agent.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

class ActedWorld {
 public:
  explicit ActedWorld(Mode mode = Mode::observe, bool named = false) {
    world.config.mode = mode;
    if (!named) world.config.enforce.cgroups.clear();
    restart();
  }
  void restart() {
    answers.reset();
    world.start();
    world.run(2);
    answers.emplace(answers_of(world));
  }
  json act(Verb verb, json args) { return acted(*answers, verb, std::move(args)); }
  json mode(const char* word, const char* container = nullptr, bool until_restart = false) {
    json args = {{"mode", word}};
    if (container != nullptr) args["container"] = container;
    if (until_restart) args["until_restart"] = true;
    return act(Verb::mode, args);
  }
  Mode in_force() const { return world.container().mode; }

  AgentWorld world;
  std::optional<Answers> answers;
};

bool has(const json& lines, const std::string& words) {
  return std::ranges::any_of(lines, [&](const json& line) {
    return line.get<std::string>().find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a mode says what holds now in a few words, and how to undo it") {
  ActedWorld world;
  const json enforced = world.mode("enforce", "test-a");
  CHECK(enforced["done"] == "test-a: enforce");
  CHECK(enforced["undo"] == "cgphase mode default test-a");
  CHECK(enforced["changes"].empty());
  CHECK(world.mode("enforce", "test-a")["undo"] == "");
  CHECK(world.mode("advise", "test-a")["undo"] == "cgphase mode enforce test-a");
  const json undone = world.mode("default", "test-a");
  CHECK(undone["done"] == "test-a: observe, as the configuration says");
  CHECK(undone["undo"] == "cgphase mode advise test-a");
  CHECK(world.in_force() == Mode::observe);
}

TEST_CASE("a mode until the restart says so, and its undo puts back what lasts") {
  ActedWorld world;
  world.mode("advise", "test-a");
  const json brief = world.mode("enforce", "test-a", true);
  CHECK(brief["done"] == "test-a: enforce until cgphased ends");
  CHECK(brief["undo"] == "cgphase mode advise test-a");
  CHECK(world.mode("observe", "test-a")["undo"] ==
        "cgphase mode enforce test-a --until-restart");
  CHECK(world.mode("advise", nullptr, true)["done"] == "host: advise until cgphased ends");
  CHECK(world.mode("default", "test-a", true)["error"]["exit"] == 2);
  CHECK(world.mode("enforced")["error"]["exit"] == 2);
}

TEST_CASE("the mode of the host says which containers it holds below their own") {
  ActedWorld world;
  world.mode("enforce", "test-a");
  const json held = world.mode("observe");
  CHECK(held["done"] == "host: observe");
  CHECK(held["undo"] == "cgphase mode default");
  CHECK(held["changes"][0] ==
        "test-a: observe while the host is; its own mode, enforce, comes back after that");
  CHECK(world.in_force() == Mode::observe);
  CHECK(world.mode("observe")["undo"] == "");
  const json ceiling = world.mode("enforce", "test-a");
  CHECK(has(ceiling["changes"], "`cgphase mode observe` applies to every container of this host; "
                                "end that: cgphase mode default"));
  const json lifted = world.mode("default");
  CHECK(lifted["done"] == "host: observe, as the configuration says");
  CHECK(lifted["undo"] == "cgphase mode observe");
  CHECK(world.in_force() == Mode::enforce);
  CHECK(world.mode("enforce")["changes"].empty());
  CHECK(world.in_force() == Mode::enforce);
}

TEST_CASE("the mode enforce of a host that enforces no container says so") {
  ActedWorld world;
  CHECK(has(world.mode("enforce")["changes"], "no container is enforced"));
  CHECK_FALSE(has(world.mode("advise")["changes"], "no container is enforced"));
  ActedWorld named(Mode::advise, true);
  CHECK_FALSE(has(named.mode("enforce")["changes"], "no container is enforced"));
}

TEST_CASE("where the configuration says enforce, enforce is the undo of another mode") {
  ActedWorld world(Mode::enforce, true);
  CHECK(world.mode("observe")["undo"] == "cgphase mode enforce");
  CHECK(world.mode("enforce")["undo"] == "cgphase mode observe");
  CHECK(world.mode("enforce")["undo"] == "");
}

TEST_CASE("what a mode cannot change is said in its answer") {
  struct Case {
    const char* cpu;
    const char* memory;
    bool manage_unlimited;
    const char* reported;
  };
  for (const Case& one : {Case{"max 100000\n", "max\n", false,
                               "no CPU and no memory limit and manage_unlimited is off, so cgphase "
                               "changes nothing"},
                          Case{"max 100000\n", kMemoryMax, false, "no CPU limit"},
                          Case{kCpuMax, "max\n", false, "no memory limit"},
                          Case{"max 100000\n", "max\n", true, nullptr},
                          Case{kCpuMax, kMemoryMax, false, nullptr}}) {
    ActedWorld world;
    world.world.tree.write("/test-a/cpu.max", one.cpu);
    world.world.tree.write("/test-a/memory.max", one.memory);
    world.world.config.manage_unlimited = one.manage_unlimited;
    world.restart();
    const json changes = world.mode("enforce", "test-a")["changes"];
    if (one.reported == nullptr) CHECK(changes.empty());
    else CHECK(has(changes, one.reported));
    CHECK(world.mode("observe", "test-a")["changes"].empty());
  }
}

TEST_CASE("a mode says that pause and kill switch hold it back") {
  ActedWorld world(Mode::enforce, true);
  REQUIRE(world.world.run_until_lowered());
  world.act(Verb::pause, {{"container", "test-a"}});
  std::ofstream(world.world.config.kill_switch) << "";
  world.world.run(1);
  const json changes = world.mode("advise", "test-a")["changes"];
  CHECK(has(changes, "the kill switch is on"));
  CHECK(has(changes, world.world.config.kill_switch));
  CHECK(has(changes, "the container is paused; resume it: cgphase resume test-a"));
  CHECK(world.mode("observe", "test-a")["changes"].empty());
  CHECK(has(world.mode("advise")["changes"], "the kill switch is on"));
  const json why = world.act(Verb::explain, {{"container", "test-a"}});
  CHECK(why["sentence"].get<std::string>().ends_with(
      " Now: nothing is written while the kill switch is there."));
}

TEST_CASE("a container of another manager cannot be enforced, and the answer names the manager") {
  ActedWorld world;
  world.world.write_process(812, "kubelet");
  world.world.run(60);
  REQUIRE_FALSE(world.world.agent->standing_down().empty());
  const json refused = world.mode("enforce", "test-a");
  CHECK(refused["error"]["exit"] == 1);
  CHECK(refused["error"]["text"].get<std::string>().find("kubelet") != std::string::npos);
  CHECK(has(world.mode("advise", "test-a")["changes"], "kubelet"));
}

TEST_CASE("the mode of a container that is gone can be taken back by its name") {
  ActedWorld world;
  world.mode("enforce", "test-a");
  world.world.tree.remove("/test-a");
  world.world.run(1);
  CHECK(world.mode("enforce", "test-a")["error"]["exit"] == 3);
  CHECK(world.mode("default", "test-a")["done"] ==
        "test-a: as the configuration says, once it runs again");
  CHECK(world.mode("default", "test-a")["error"]["exit"] == 3);
  world.world.write_container();
  world.world.run(1);
  CHECK(world.in_force() == Mode::observe);
}

TEST_CASE("config lists modes that a command set, and since when") {
  ActedWorld world;
  const auto row = [&](const char* list, const std::string& key) {
    const json reply = world.act(Verb::config, json::object());
    for (const json& one : reply[list])
      if (one["key"] == key) return one;
    return json(nullptr);
  };
  CHECK(row("config", "mode")["origin"] == "default");
  world.mode("advise");
  world.mode("enforce", "test-a", true);
  const std::string host = row("config", "mode")["origin"];
  CHECK(row("config", "mode")["value"] == "\"advise\"");
  CHECK(host.starts_with("set by `cgphase mode`, since "));
  CHECK(host.ends_with(" UTC"));
  const json own = row("modes", "mode of cgroup:test-a");
  CHECK(own["value"] == "enforce");
  CHECK(own["origin"].get<std::string>().starts_with(
      "set by `cgphase mode` --until-restart, since "));
  world.mode("default");
  CHECK(row("config", "mode")["origin"] == "default");
}

TEST_CASE("undo is what takes an action back, and empty where nothing changed") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  Answers answers = answers_of(world);
  const auto act = [&](Verb verb, const json& args) { return acted(answers, verb, args); };
  const json one = {{"container", "test-a"}};
  const json paused = act(Verb::pause, one);
  CHECK(paused["undo"] == "cgphase resume test-a");
  CHECK(paused["changes"].size() == 1);  // its limits were put back
  CHECK(world.original());
  CHECK(act(Verb::pause, one)["undo"] == "");
  CHECK(act(Verb::restore, {{"all", true}})["undo"] == "cgphase mode enforce");
  CHECK(act(Verb::restore, {{"all", true}})["undo"] == "");
  CHECK(act(Verb::restore, one)["undo"] == "");  // paused it is still
  CHECK(act(Verb::resume, one)["undo"] == "cgphase pause test-a");
  CHECK(act(Verb::restore, one)["undo"] == "cgphase resume test-a");
}

TEST_CASE("if containers share a name, undo has the path, and the reply counts them") {
  AgentWorld world;
  world.config.include.push_back("/many/*/same");
  world.config.enforce.cgroups.push_back("/many/*/same");
  for (const char* path : {"/many/1/same", "/many/2/same"})
    world.tree.write(std::string(path) + "/cpu.max", kCpuMax);
  world.start();
  world.run(1);
  Answers answers = answers_of(world);
  const auto act = [&](Verb verb, json args) { return acted(answers, verb, std::move(args)); };
  const std::string both = "; this goes by engine and name, which 2 containers have";
  const json first = {{"container", "/many/1/same"}};
  const json paused = act(Verb::pause, first);
  CHECK(paused["done"] == "same is left alone until it is resumed" + both);
  CHECK(paused["undo"] == "cgphase resume /many/1/same");
  CHECK(act(Verb::resume, {{"container", "/many/2/same"}})["undo"] == "cgphase pause /many/2/same");
  const json put_back = act(Verb::restore, first);
  CHECK(put_back["done"] == "same has its original limits and is left alone" + both);
  CHECK(put_back["undo"] == "cgphase resume /many/1/same");
  act(Verb::resume, first);
  const json advised = act(Verb::mode, {{"container", "/many/1/same"}, {"mode", "advise"}});
  CHECK(advised["done"] == "same: advise" + both);
  CHECK(advised["undo"] == "cgphase mode default /many/1/same");
  CHECK(act(Verb::pause, {{"container", "test-a"}})["done"] ==
        "test-a is left alone until it is resumed");
}

TEST_CASE("a pin says what holds now, how far it goes and how to undo it") {
  AgentWorld world;
  world.start();
  world.run(1);
  Answers answers = answers_of(world);
  const auto act = [&](Verb verb, json args) { return acted(answers, verb, std::move(args)); };
  const auto pin = [&](json args) {
    args["container"] = "test-a";
    return act(Verb::pin, std::move(args));
  };
  const json cpu = pin({{"cpus", 0.5}});
  CHECK(cpu["done"] ==
        "test-a is pinned to cpu=0.5 until this container or cgphased ends");
  CHECK(cpu["undo"] == "cgphase pin test-a cpu=auto,memory=auto");
  REQUIRE(cpu["changes"].size() == 1);
  CHECK(cpu["changes"][0] ==
        "its limits follow by steps, as far as the safety rules allow: cgphase explain test-a");
  const json both = pin({{"memory_mib", 300}});
  CHECK(both["done"] ==
        "test-a is pinned to cpu=0.5,memory=314572800 until this container or cgphased ends");
  CHECK(both["undo"] == "cgphase pin test-a cpu=0.5,memory=auto");
  CHECK(pin({{"memory_mib", 300}})["undo"] == "");
  const json shown = acted(answers, Verb::show, {{"container", "test-a"}});
  CHECK(shown["pinned"] == json{{"cpu_cores", 0.5}, {"memory_bytes", 314572800}});
  act(Verb::pause, {{"container", "test-a"}});
  act(Verb::mode, {{"container", "test-a"}, {"mode", "advise"}});
  const json held = pin({{"cpus", 0.6}});
  REQUIRE(held["changes"].size() == 3);
  CHECK(held["changes"][1] ==
        "nothing is written in mode advise: cgphase mode enforce test-a");
  CHECK(held["changes"][2] == "nothing is written while it is paused: cgphase resume test-a");
  CHECK(act(Verb::resume, {{"container", "test-a"}})["changes"][0] ==
        "test-a is still pinned to cpu=0.6,memory=314572800; end that: cgphase pin test-a auto");
  CHECK(pin({{"memory_mib", 1e-7}})["done"].get<std::string>().starts_with(
      "test-a is pinned to cpu=0.6,memory=1 "));
  CHECK(pin({{"cpus", 0}, {"memory_mib", 0}})["done"] ==
        "limits of test-a are as the policy has them");
  CHECK_FALSE(world.agent->core().containers()[0]->pin.any());
}

TEST_CASE("a pin gives no more than there was, and restore --all keeps it and says so") {
  AgentWorld world;
  world.start();
  world.run(1);
  Answers answers = answers_of(world);
  const auto act = [&](Verb verb, json args) { return acted(answers, verb, std::move(args)); };
  const auto refused = [&](json args) {
    args["container"] = "test-a";
    const json reply = act(Verb::pin, std::move(args));
    return std::to_string(reply["error"]["exit"].get<int>()) + " " +
           reply["error"]["text"].get<std::string>();
  };
  CHECK(refused({{"cpus", 1.5}}) == "6 pin: test-a: 1.5 cores are more than its own limit, 1");
  CHECK(refused({{"memory_mib", 2048}}) ==
        "6 pin: test-a: 2147483648 bytes are more than its own limit, 1073741824");
  CHECK(refused(json::object()) ==
        "2 pin: name a CPU limit or a memory limit");
  CHECK_FALSE(world.agent->core().containers()[0]->pin.any());
  act(Verb::pin, {{"container", "test-a"}, {"cpus", 0.5}});
  const json all = act(Verb::restore, {{"all", true}});
  CHECK(all["changes"].back() ==
        "test-a is still pinned to cpu=0.5; end that: cgphase pin test-a auto");
  CHECK(world.agent->core().containers()[0]->pin.any());
}
