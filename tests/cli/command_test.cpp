#include <nlohmann/json.hpp>

#include "tests/cli/command_run.h"
#include "tests/cli/reports.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

json done(const Request&) {
  return to_json(ActionReport{"web-1 is in mode enforce", "cgphase mode observe web-1", {}, {}});
}

}  // namespace

TEST_CASE("without a daemon every verb that needs one exits with 4 and one line") {
  CommandRun command;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"status"}, {"list"}, {"show", "x"}, {"explain", "x"},
        {"history", "x"}, {"events"}, {"mode", "observe"}, {"pause", "x"}, {"resume", "x"},
        {"restore", "x"}, {"size", "x"}, {"size", "--image", "x"},
        {"fit", "--cpus", "1", "--memory", "1G", "--for", "1h"},
        {"record", "-o", command.directory() / "x.csv"},
        {"export", "-o", command.directory() / "x.db"}}) {
    const Ran ran = command.run(words);
    CHECK_MESSAGE(ran.exit == 4, words[0]);
    CHECK(ran.out.empty());
    CHECK(one_line(ran.err));
    CHECK(ran.err.starts_with("cgphase: cannot reach the daemon at "));
  }
}

TEST_CASE("a usage error exits with 2 and one line") {
  CommandRun command;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"stauts"}, {"show"}, {"list", "--bogus"},
        {"list", "-o", "xml"}, {"mode", "enfroce"}, {"restore"}, {"restore", "--all", "x"},
        {"explain", "x", "--at", "?"},
        {"list", "extra"}, {"list", "--color", "pink"}, {"history", "x", "-n", "0"}}) {
    const Ran ran = command.run(words);
    CHECK_MESSAGE(ran.exit == 2, (words.empty() ? "(nothing)" : words[0]), ran.err);
    CHECK(ran.out.empty());
    CHECK(one_line(ran.err));
  }
}

TEST_CASE("an unknown verb names the nearest") {
  CommandRun command;
  CHECK(command.run({"stauts"}).err == "cgphase: no verb 'stauts'; did you mean 'status'?\n");
}

TEST_CASE("a container that does not exist exits with 3 and the daemon's sentence") {
  CommandRun command;
  command.serve([](const Request&) {
    return error_reply(Exit::no_container, "no container 'web-2'; did you mean 'web-1'?");
  });
  const Ran ran = command.run({"show", "web-2"});
  CHECK(ran.exit == 3);
  CHECK(ran.err == "cgphase: no container 'web-2'; did you mean 'web-1'?\n");
}

TEST_CASE("what the daemon does not permit exits with 5, what is invalid with 6") {
  CommandRun command;
  Exit exit = Exit::denied;
  command.serve([&](const Request&) { return error_reply(exit, "no"); });
  CHECK(command.run({"mode", "enforce"}).exit == 5);
  exit = Exit::invalid;
  CHECK(command.run({"mode", "enforce"}).exit == 6);
}

TEST_CASE("an error text that is hostile stays one line") {
  CommandRun command;
  command.serve([](const Request&) { return error_reply(Exit::failure, "a\nb\x1b[2J"); });
  CHECK(command.run({"status"}).err == "cgphase: a\\x0ab\\x1b[2J\n");
}

TEST_CASE("list prints a table in a pipe without colour, and the reply itself as JSON") {
  CommandRun command;
  const json reply = list_reply(std::vector{web()});
  command.serve([&](const Request&) { return reply; });
  const Ran table = command.run({"list"});
  CHECK(table.exit == 0);
  CHECK(table.err.empty());
  CHECK(table.out.starts_with("NAME   MODE     PHASE"));
  CHECK(table.out.find('\x1b') == std::string::npos);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "--json"}, {"--json", "list"}, {"list", "-o", "json"}})
    CHECK(json::parse(command.run(words).out) == reply);
}

TEST_CASE("colour is forced by --color and refused by NO_COLOR") {
  CommandRun command;
  command.serve([](const Request&) { return list_reply(std::vector{web()}); });
  CHECK(command.run({"list", "--color=always"}).out.find('\x1b') != std::string::npos);
  CHECK(command.run({"list"}, {{"FORCE_COLOR", "1"}}).out.find('\x1b') != std::string::npos);
  CHECK(command.run({"list"}, {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}).out.find('\x1b') ==
        std::string::npos);
}

TEST_CASE("a reply without a CSV form is a usage error") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(status()); });
  CHECK(command.run({"status", "-o", "csv"}).exit == 2);
  CHECK(command.run({"status"}).exit == 0);
}

TEST_CASE("mode goes to the admin socket with its container and prints the undo") {
  CommandRun command;
  command.serve(done);
  const Ran ran = command.run({"mode", "enforce", "web-1"});
  CHECK(ran.exit == 0);
  CHECK(ran.out == "web-1 is in mode enforce\nundo: cgphase mode observe web-1\n");
  REQUIRE(command.requests().size() == 1);
  CHECK(command.requests()[0].verb == Verb::mode);
  CHECK(command.requests()[0].args == json{{"mode", "enforce"}, {"container", "web-1"}});
}

TEST_CASE("pause, resume and restore name their container") {
  CommandRun command;
  command.serve(done);
  CHECK(command.run({"pause", "a"}).exit == 0);
  CHECK(command.run({"resume", "b"}).exit == 0);
  CHECK(command.run({"restore", "c"}).exit == 0);
  CHECK(command.run({"restore", "--all"}).exit == 0);
  REQUIRE(command.requests().size() == 4);
  CHECK(command.requests()[0].verb == Verb::pause);
  CHECK(command.requests()[1].args["container"] == "b");
  CHECK(command.requests()[2].verb == Verb::restore);
  CHECK(command.requests()[3].args == json{{"all", true}});
}

TEST_CASE("quiet keeps an acting verb silent, and not its JSON") {
  CommandRun command;
  command.serve(done);
  CHECK(command.run({"-q", "pause", "a"}).out.empty());
  CHECK_FALSE(command.run({"-q", "pause", "a", "--json"}).out.empty());
}

TEST_CASE("an action that failed in part exits with 1 and names the parts") {
  CommandRun command;
  command.serve([](const Request&) {
    return to_json(ActionReport{"1 of 2 restored", "", {}, {"b: memory.max: EIO"}});
  });
  const Ran ran = command.run({"restore", "--all"});
  CHECK(ran.exit == 1);
  CHECK(ran.out.find("failed: b: memory.max: EIO") != std::string::npos);
  const Ran quiet = command.run({"-q", "restore", "--all"});
  CHECK(quiet.exit == 1);
  CHECK(quiet.out == ran.out);  // silent is only success
}

TEST_CASE("explain sends the time that was meant") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(explain()); });
  CHECK(command.run({"explain", "web-1", "--at", "@1773585000"}).exit == 0);
  CHECK(command.run({"explain", "web-1", "--at", "-10m"}).exit == 0);
  REQUIRE(command.requests().size() == 2);
  CHECK(command.requests()[0].number("at_seconds") == 1'773'585'000);
  CHECK(command.requests()[1].number("at_seconds").has_value());
}

TEST_CASE("events and history send span and limit") {
  CommandRun command;
  command.serve([](const Request&) { return events_reply({}); });
  CHECK(command.run({"events", "--since", "@1000000", "--until", "@2000000", "-n", "5"}).exit == 0);
  CHECK(command.run({"history", "web-1"}).exit == 0);
  CHECK(command.requests().at(0).args ==
        json{{"from_seconds", 1e6}, {"until_seconds", 2e6}, {"limit", 5}});
  CHECK(command.requests().at(1).number("from_seconds").has_value());
  CHECK(command.run({"history", "web-1", "--until", "@2000000"}).exit == 0);
  CHECK(command.requests().at(2).number("from_seconds") == 2e6 - 3600);
  CHECK(command.run({"events", "-f", "--until", "@2000000"}).exit == 2);
}

TEST_CASE("doctor runs without a daemon and gives findings as JSON") {
  CommandRun command;
  const Ran ran = command.run({"doctor", "--json", "--cgroup-root", "/nonexistent"});
  CHECK(ran.exit == 1);
  const json body = json::parse(ran.out);
  CHECK(body["worst"] == "fail");
  bool daemon_seen = false;
  for (const json& finding : body["findings"]) daemon_seen |= finding["name"] == "daemon";
  CHECK(daemon_seen);
}

TEST_CASE("doctor asks a daemon that is there, and finds that it answers") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(StatusReport{.version = "9.8.7"}); });
  const json body = json::parse(command.run({"doctor", "--json"}).out);
  for (const json& finding : body["findings"])
    if (finding["name"] == "daemon") CHECK(finding["level"] == "ok");
  REQUIRE(command.requests().size() == 1);
  CHECK(command.requests()[0].verb == Verb::status);
}

TEST_CASE("help and version exit with 0") {
  CommandRun command;
  CHECK(command.run({"--version"}).out.starts_with("cgphase "));
  CHECK(command.run({"--help"}).exit == 0);
  CHECK(command.run({"list", "--help"}).exit == 0);
}
