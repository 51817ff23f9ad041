#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "model/installed_models.h"
#include "model/model.h"
#include "protocol/report.h"
#include "tests/cli/command_run.h"
#include "tests/cli/small_model.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

// A host with its own state directory, with or without a daemon.
struct Host {
  CommandRun command;
  std::string state = command.directory() / "state";
  std::string file = command.directory() / "new.json";
  std::string model_origin = "default";
  std::optional<json> refusal;  // the daemon's reply to the change

  Host() {
    std::filesystem::create_directory(state);
    REQUIRE(save_model(small_model(), file));
  }
  void serve() {
    command.serve([this](const Request& request) -> json {
      if (verb_of(request) == Verb::config)
        return ok_reply({{"config",
                          {{{"key", "state_dir"}, {"value", json(state).dump()},
                            {"origin", "default"}},
                           {{"key", "model"}, {"value", "\"/m\""}, {"origin", model_origin}}}}});
      if (verb_of(request) == Verb::status)
        return ok_reply({{"model", {{"path", state + "/models/1.json"}}}});
      if (refusal) return *refusal;
      return ok_reply(to_json(ActionReport{.done = "taken", .undo = {}, .changes = {},
                                           .failures = {}}));
    });
  }
  Ran model(std::vector<std::string> words) {
    words.insert(words.begin(), "model");
    return command.run(words);
  }
  Ran offline(std::vector<std::string> words) {
    words.insert(words.end(), {"--state-dir", state});
    return model(words);
  }
  InstalledModels found() const { return installed_models(state).value(); }
};

}  // namespace

TEST_CASE_FIXTURE(Host, "install puts a model in use, notifies the daemon and prints the undo") {
  serve();
  const Ran ran = model({"install", file});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(has(ran.out, "model 1 is installed"));
  CHECK(has(ran.out, "cgphase model rollback"));
  CHECK(verb_of(command.requests().back()) == Verb::model);
  CHECK(content(state + "/models/1.json") == content(file));
  CHECK(found().current == 1);
}

TEST_CASE_FIXTURE(Host, "without a daemon, a model is installed for its next start") {
  const Ran ran = offline({"install", file});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(has(ran.out, "from its next start"));
  CHECK(found().current == 1);
}

TEST_CASE_FIXTURE(Host, "a file that is not a model is refused with 6 and nothing changes") {
  serve();
  std::string text = content(file);
  text[text.size() / 2] ^= 1;
  const std::string bad = command.directory() / "bad.json";
  REQUIRE(replace_file(bad, text));
  CHECK(model({"install", bad}).exit == 6);
  CHECK(model({"install", command.directory() / "none"}).exit == 6);
  CHECK_FALSE(std::filesystem::exists(state + "/models"));
}

TEST_CASE_FIXTURE(Host, "a model that uses columns of traces cannot be installed") {
  serve();
  Model columns = small_model();
  columns.schema.entries[0] = {Feature::column, "cpu.num.cores"};
  REQUIRE(save_model(columns, file));
  const Ran ran = model({"install", file});
  CHECK(ran.exit == 6);
  CHECK(has(ran.err, "columns"));
  CHECK_FALSE(std::filesystem::exists(state + "/models"));
}

TEST_CASE_FIXTURE(Host, "if the configuration names a model, install refuses with 6") {
  model_origin = "/etc/cgphase/cgphase.toml:7";
  serve();
  const Ran ran = model({"install", file});
  CHECK(ran.exit == 6);
  CHECK(has(ran.err, "cgphase.toml:7"));
  CHECK(model({"rollback"}).exit == 6);
  CHECK_FALSE(std::filesystem::exists(state + "/models"));
}

TEST_CASE_FIXTURE(Host, "a change that the daemon refuses is undone completely") {
  serve();
  REQUIRE(model({"install", file}).exit == 0);
  refusal = error_reply(Exit::failure, "the daemon would rather not");
  const Ran ran = model({"install", file});
  CHECK(ran.exit == 1);
  CHECK(has(ran.err, "would rather not"));
  CHECK(found().current == 1);
  CHECK(found().models.size() == 1);
  CHECK(model({"rollback"}).exit == 1);
  CHECK(found().current == 1);
}

TEST_CASE_FIXTURE(Host, "rollback returns step by step to the package's model, and can be undone") {
  REQUIRE(offline({"install", file}).exit == 0);
  REQUIRE(offline({"install", file}).exit == 0);
  const Ran back = offline({"rollback"});
  CHECK(back.exit == 0);
  CHECK(has(back.out, "model install " + state + "/models/2.json"));
  CHECK(found().current == 1);
  REQUIRE(offline({"install", state + "/models/2.json"}).exit == 0);
  CHECK(found().current == 3);
  REQUIRE(offline({"rollback"}).exit == 0);
  CHECK(found().current == 1);
  const Ran last = offline({"rollback"});
  CHECK(has(last.out, "the package's model is in use again"));
  CHECK_FALSE(found().current);
  const Ran none = offline({"rollback"});
  CHECK(none.exit == 1);
  CHECK(has(none.err, "no model is installed in"));
}

TEST_CASE_FIXTURE(Host, "list shows the models, the one in use, and damaged ones") {
  REQUIRE(offline({"install", file}).exit == 0);
  REQUIRE(offline({"install", file}).exit == 0);
  REQUIRE(replace_file(state + "/models/2.json", "damaged"));
  const json body = json::parse(offline({"list", "--json"}).out);
  CHECK(body["schema"] == 2);
  REQUIRE(body["models"].size() >= 3);
  CHECK(body["models"][0]["in_use"] == true);
  CHECK(body["models"][0]["phases"] == 3);
  CHECK(body["models"][1]["current"] == true);
  CHECK(body["models"][1]["in_use"] == false);
  CHECK(has(body["models"][1]["problem"].get<std::string>(), "2.json"));
  CHECK(body["models"][2]["origin"] == "package");
  CHECK(has(offline({"list"}).out, "cannot be used"));
  CHECK(offline({"list", "-ocsv"}).out.starts_with("number,origin,in_use"));
}

TEST_CASE_FIXTURE(Host, "a missing state directory is reported") {
  std::filesystem::remove(state);
  CHECK(offline({"install", file}).exit == 6);
}
