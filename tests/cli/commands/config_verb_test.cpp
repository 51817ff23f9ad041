// config show, diff and check on the built command. The built daemon checks the files.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/cli/command_run.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

json set_key(const char* key, const char* value, const char* origin) {
  return {{"key", key}, {"value", value}, {"origin", origin}};
}

// A daemon that an administrator switched to enforce after its start.
struct ConfiguredDaemon {
  ConfiguredDaemon() {
    command.serve([this](const Request&) { return ok_reply({{"config", rows}}); });
  }
  std::string text(std::vector<std::string> words) {
    words.insert(words.begin(), "config");
    const Ran ran = command.run(std::move(words));
    CHECK_MESSAGE(ran.exit == 0, ran.err);
    return ran.out;
  }

  json rows = {set_key("mode", R"("enforce")", "default"),
               set_key("store.cap", R"("1G")", "/etc/cgphase/cgphase.toml:3"),
               set_key("gpu.enabled", "true", "/etc/cgphase/conf.d/a.toml:2"),
               set_key("policy", R"("hold")", "--policy"),
               set_key("new.key", "7", "/etc/cgphase/cgphase.toml:9")};
  CommandRun command;
};

// A valid configuration, made of files of the test.
struct CheckedFiles {
  CheckedFiles() {
    for (const char* folder : {"cgroup", "conf.d"})
      std::filesystem::create_directory(command.directory() / folder);
    write("cgroup/cgroup.controllers", "memory pids\n");
    write("good.toml", good());
  }
  void write(const std::string& name, const std::string& text) const {
    REQUIRE(replace_file(command.directory() / name, text));
  }
  std::string good() const {
    return "cgroup_root = \"" + command.directory() / "cgroup" + "\"\nstate_dir = \"" +
           command.directory() / "state" +
           "\"\nmodel = \"" CGPHASE_SOURCE_DIR "/model/default_model.json\"\n";
  }
  Ran check(const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"config", "check", command.directory() / name});
    return command.run(std::move(more));
  }

  CommandRun command;
};

}  // namespace

TEST_CASE_FIXTURE(ConfiguredDaemon, "config show lists keys and values, and where they were set") {
  CHECK(text({"show"}) ==
        "KEY          VALUE\n"
        "mode         \"enforce\"\n"
        "store.cap    \"1G\"\n"
        "gpu.enabled  true\n"
        "policy       \"hold\"\n"
        "new.key      7\n");
  CHECK(text({"show", "--origin"}) ==
        "KEY          VALUE      ORIGIN\n"
        "mode         \"enforce\"  default\n"
        "store.cap    \"1G\"       /etc/cgphase/cgphase.toml:3\n"
        "gpu.enabled  true       /etc/cgphase/conf.d/a.toml:2\n"
        "policy       \"hold\"     --policy\n"
        "new.key      7          /etc/cgphase/cgphase.toml:9\n");
  REQUIRE(command.requests().size() == 2);
  CHECK(verb_of(command.requests()[0]) == Verb::config);
  CHECK(arguments_of(command.requests()[0]).empty());
}

TEST_CASE_FIXTURE(ConfiguredDaemon, "config show in JSON is the reply, in CSV its columns") {
  CHECK(json::parse(text({"show", "--json"})) == ok_reply({{"config", rows}}));
  const std::string lines = text({"show", "-o", "jsonl"});
  CHECK(std::ranges::count(lines, '\n') == 5);
  CHECK(json::parse(lines.substr(0, lines.find('\n'))) == rows[0]);
  CHECK(text({"show", "-o", "csv"}).starts_with("key,value\nmode,\"\"\"enforce\"\"\"\n"));
  CHECK(text({"show", "--origin", "-o", "csv", "--no-legend"})
            .starts_with("mode,\"\"\"enforce\"\"\",default\n"));
  CHECK(command.run({"config", "show", "-o", "openmetrics"}).exit == 2);
}

TEST_CASE_FIXTURE(ConfiguredDaemon,
                  "config diff lists keys that are not the default, with the default") {
  CHECK(text({"diff"}) ==
        "KEY        VALUE      ORIGIN                       DEFAULT\n"
        "mode       \"enforce\"  default                      \"observe\"\n"
        "store.cap  \"1G\"       /etc/cgphase/cgphase.toml:3  \"256M\"\n"
        "policy     \"hold\"     --policy                     \"phase\"\n"
        "new.key    7          /etc/cgphase/cgphase.toml:9  -\n");
  const json body = json::parse(text({"diff", "-o", "json"}));
  CHECK(body["schema"] == 2);
  REQUIRE(body["config"].size() == 4);
  CHECK(body["config"][1]["default"] == R"("256M")");
  CHECK(body["config"][3]["default"].is_null());
  CHECK(text({"diff", "-o", "csv"})
            .ends_with("new.key,7,/etc/cgphase/cgphase.toml:9,\n"));
  rows = {set_key("mode", R"("observe")", "/etc/cgphase/cgphase.toml:3")};
  CHECK(text({"diff"}) == "every key has its default\n");
  CHECK(text({"diff", "--no-legend"}).empty());
  CHECK(json::parse(text({"diff", "--json"}))["config"].empty());
}

TEST_CASE_FIXTURE(ConfiguredDaemon, "values of a configuration reach the terminal escaped") {
  rows = {set_key("include", "[\"\x1b[2J\"]", "/\x1b]0;x\x07.toml:1")};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"show", "--origin"}, {"diff"}})
    CHECK(text(words).find_first_of("\x1b\x07") == std::string::npos);
}

TEST_CASE_FIXTURE(CheckedFiles, "config check reports a valid configuration without a daemon") {
  const std::string path = command.directory() / "good.toml";
  const Ran ran = check("good.toml");
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(ran.out == path + ": valid; a daemon would start with it\n");
  CHECK(json::parse(check("good.toml", {"--json"}).out) ==
        json{{"schema", 2}, {"file", path}, {"valid", true}, {"warnings", json::array()}});
  CHECK(check("good.toml", {"-o", "csv"}).out == "file,valid\n" + path + ",true\n");
  CHECK(check("good.toml", {"-o", "openmetrics"}).exit == 2);
}

TEST_CASE_FIXTURE(CheckedFiles, "config check repeats the warnings about keys that are ignored") {
  write("old.toml", "rails.trial = \"1s\"\nguard.enabled = false\n" + good());
  const std::string path = command.directory() / "old.toml";
  const Ran ran = check("old.toml");
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(ran.out.starts_with(path + ": valid; a daemon would start with it\nwarning: "));
  CHECK(ran.out.find("warning: " + path + ":1: rails.trial is ignored: ") != std::string::npos);
  CHECK(ran.out.find("warning: " + path + ":2: guard.enabled is ignored: ") != std::string::npos);
  write("old.toml", "rails.trial = \"1s\"\nmoed = 1\n" + good());
  CHECK(check("old.toml").err.starts_with("cgphase: " + path + ":2:1: unknown key moed"));
}

TEST_CASE_FIXTURE(CheckedFiles, "config check names file, line, column and error") {
  write("bad.toml", good() + "moed = \"enforce\"\n");
  const Ran ran = check("bad.toml", {"--json"});
  CHECK(ran.exit == 6);
  CHECK(ran.out.empty());
  CHECK(one_line(ran.err));
  CHECK(ran.err.starts_with("cgphase: " + command.directory() / "bad.toml" +
                            ":4:1: unknown key moed; nearest is mode"));
  CHECK(check("absent.toml").exit == 6);
  // Also those in conf.d beside it.
  write("conf.d/a.toml", "\ninterval = \"1\"\n");
  const Ran beside = check("good.toml");
  CHECK(beside.exit == 6);
  CHECK(has(beside.err, "conf.d/a.toml:2:"));
}

TEST_CASE_FIXTURE(CheckedFiles, "config check checks what the daemon needs to start") {
  write("good.toml", good() + "mode = \"advise\"\n");  // without the cpu controller
  const Ran ran = check("good.toml");
  CHECK(ran.exit == 6);
  CHECK(one_line(ran.err));
}
