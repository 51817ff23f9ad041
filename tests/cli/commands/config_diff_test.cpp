#include "cli/commands/config_diff.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "agent/config/config.h"
#include "cli/commands/embedded_files.h"

using namespace cgphase;
using nlohmann::json;

namespace {

json config_row(const char* key, const char* value, const char* origin) {
  return {{"key", key}, {"value", value}, {"origin", origin}};
}

json differences_of(const std::vector<json>& rows) {
  const ConfigDefaults defaults = {{"mode", "\"observe\""}, {"store.cap", "\"256M\""}};
  return config_differences({{"schema", 2}, {"config", rows}}, defaults);
}

}  // namespace

TEST_CASE("defaults are the commented keys of a file, with their sections") {
  const ConfigDefaults defaults = parse_config_defaults(
      "# What is = for people.\n#mode = \"observe\"\n\n[store]\n# Allowed: a = b\n"
      "#cap = \"256M\"\nset = 1\n#nothing\n[rails]\n#trial = \"a = b\"");
  CHECK(defaults == ConfigDefaults{{"mode", "\"observe\""},
                                   {"store.cap", "\"256M\""},
                                   {"rails.trial", "\"a = b\""}});
  CHECK(parse_config_defaults("").empty());
}

TEST_CASE("the embedded defaults are exactly those of the daemon") {
  const ConfigDefaults defaults = parse_config_defaults(default_config_file());
  const std::vector<ConfigValue> rows = config_rows(Config{});
  CHECK(defaults.size() == rows.size());
  for (const ConfigValue& row : rows) {
    CAPTURE(row.key);
    REQUIRE(defaults.contains(row.key));
    CHECK(defaults.at(row.key) == row.value);
  }
}

TEST_CASE("a key differs if its value does, wherever it was set") {
  const json reply = differences_of({config_row("mode", "\"enforce\"", "default"),
                                     config_row("store.cap", "\"256M\"", "/a.toml:3")});
  REQUIRE(reply["config"].size() == 1);
  CHECK(reply["schema"] == 2);
  CHECK(reply["config"][0] == json{{"key", "mode"},
                                   {"value", "\"enforce\""},
                                   {"origin", "default"},
                                   {"default", "\"observe\""}});
}

TEST_CASE("an unknown key differs if it was set, and its default is null") {
  const json reply = differences_of(
      {config_row("new.set", "7", "/a.toml:3"), config_row("new.untouched", "8", "default")});
  REQUIRE(reply["config"].size() == 1);
  CHECK(reply["config"][0]["key"] == "new.set");
  CHECK(reply["config"][0]["default"].is_null());
}

TEST_CASE("a reply of an unknown form has no differences") {
  CHECK(config_differences(json::object(), {})["config"].empty());
  CHECK(config_differences({{"config", 7}}, {})["config"].empty());
  const json odd = differences_of({json(7), json::array(), json::object(), {{"origin", 7}}});
  CHECK(odd["config"].empty());
}
