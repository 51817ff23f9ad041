#include "cli/commands/config_diff.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "agent/config/config.h"
#include "cli/commands/embedded_files.h"

using namespace cgphase;
using nlohmann::json;

namespace {

std::vector<ConfigDifference> differences_of(const std::vector<ConfigEntry>& rows) {
  const ConfigDefaults defaults = {{"mode", "\"observe\""}, {"store.cap", "\"256M\""}};
  return config_differences({.config = rows}, defaults).config;
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
  const auto found = differences_of({{"mode", "\"enforce\"", "default"},
                                     {"store.cap", "\"256M\"", "/a.toml:3"}});
  REQUIRE(found.size() == 1);
  CHECK(to_json(ConfigDifferences{found})["config"][0] == json{{"key", "mode"},
                                                               {"value", "\"enforce\""},
                                                               {"origin", "default"},
                                                               {"default", "\"observe\""}});
}

TEST_CASE("an unknown key differs if it was set, and its default is null") {
  const auto found =
      differences_of({{"new.set", "7", "/a.toml:3"}, {"new.untouched", "8", "default"},
                      {"new.without_origin", "9", ""}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].key == "new.set");
  CHECK(to_json(ConfigDifferences{found})["config"][0]["default"].is_null());
}
