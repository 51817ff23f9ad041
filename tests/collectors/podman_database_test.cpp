// The databases of engines: whole, cut and hostile.
#include "collectors/containers/podman_database.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "collectors/containers/bolt_file.h"
#include "collectors/containers/engine_files.h"
#include "tests/collectors/bolt_bytes.h"

using namespace cgphase;

namespace {

const std::string kConfig = R"({"name":"db","rootfsImageName":"pg:16","labels":{"a":"b"}})";

ErrorKind kind_of(const Result<std::string>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().kind;
}

}  // namespace

TEST_CASE("Podman's databases have the configuration of a container by its id") {
  CHECK(config_in_bolt(podman_bolt({{"a", "{}"}, {"b", kConfig}}), "b") == kConfig);
  CHECK(config_in_sqlite(podman_sqlite({{"a", "{}"}, {"b", kConfig}}), "b") == kConfig);
  CHECK(kind_of(config_in_bolt(podman_bolt({{"a", "{}"}}), "b")) == ErrorKind::not_found);
  CHECK(kind_of(config_in_sqlite(podman_sqlite({{"a", "{}"}}), "b")) == ErrorKind::not_found);
}

TEST_CASE("a configuration of several pages is read whole") {
  const std::string json = R"({"name":"db","x":")" + std::string(3 * kBoltPage, 'x') + R"("})";
  CHECK(config_in_bolt(podman_bolt({{"a", "{}"}, {"b", json}}), "b") == json);
  CHECK(config_in_sqlite(podman_sqlite({{"b", json}}), "b") == json);
}

TEST_CASE("a bbolt tree of several pages is searched and walked") {
  const std::string left = bolt_leaf({{"a", "1"}, {"b", "2"}}, 3);
  const std::string right = bolt_leaf({{"c", "3"}, {"d", "4"}}, 4);
  const auto file = BoltFile::parse(bolt_file({bolt_branch({{"a", 3}, {"c", 4}}, 2), left, right}));
  REQUIRE(file.has_value());
  for (const auto& [key, value] : {std::pair{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}})
    CHECK(file->value(file->root(), key) == std::string_view(value));
  for (const char* key : {"", "0", "bb", "e"}) CHECK_FALSE(file->value(file->root(), key));
  std::string keys;
  file->each(file->root(), [&](std::string_view key, auto) { keys += key; return true; });
  CHECK(keys == "abcd");
}

TEST_CASE("the newer of bbolt's two states counts, unless it is damaged") {
  const std::string old = bolt_leaf({{"k", "old"}}, 2), fresh = bolt_leaf({{"k", "new"}}, 3);
  std::string file = bolt_file({old, fresh}, 3);
  const std::string first = bolt_meta(0, 2, 6);
  file.replace(0, first.size(), first);
  const auto value = [](const std::string& bytes) {
    const auto parsed = BoltFile::parse(bytes);
    return std::string(parsed->value(parsed->root(), "k").value_or(""));
  };
  CHECK(value(file) == "new");
  file[kBoltPage + 40] ^= 1;
  CHECK(value(file) == "old");
  file[40] ^= 1;
  CHECK_FALSE(BoltFile::parse(file).has_value());
}

TEST_CASE("a page that leads to itself ends") {
  const std::string loop = bolt_branch({{"a", 2}, {"b", 2}}, 2);
  const auto file = BoltFile::parse(bolt_file({loop}));
  REQUIRE(file.has_value());
  CHECK_FALSE(file->value(file->root(), "a").has_value());
  std::size_t keys = 0;
  file->each(file->root(), [&](auto, auto) { ++keys; return true; });
  CHECK(keys == 0);
}

TEST_CASE("containerd's database has image and labels of a container in its namespace") {
  ContainerInfo container;
  container.engine_id = "app";
  const std::string database = containerd_bolt(
      "ci", "app", "lab/app:1", {{"cgphase.mode", "observe"}, {"nerdctl/name", "n"}});
  CHECK_FALSE(apply_containerd_database(database, "default", container));
  CHECK(apply_containerd_database(database, "ci", container));
  CHECK(container.image == "lab/app:1");
  CHECK(container.name == "n");
  CHECK(container.labels.at("cgphase.mode") == "observe");
}

// rule: SEC-05
TEST_CASE("a view that never ends in place of Podman's table is stopped") {
  const std::string endless =
      "DROP TABLE ContainerConfig; CREATE VIEW ContainerConfig AS WITH RECURSIVE n(x) AS "
      "(SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'b' AS ID, x AS JSON FROM n WHERE x < 0;";
  CHECK(kind_of(config_in_sqlite(podman_sqlite({}, endless), "b")) == ErrorKind::invalid);
}

// rule: SEC-05
TEST_CASE("cut and changed databases are harmless") {
  constexpr unsigned kSeed = 78;
  CAPTURE(kSeed);
  std::mt19937 random(kSeed);
  const std::string bolt = podman_bolt({{"a", "{}"}, {"b", kConfig}});
  const std::string meta = containerd_bolt("ci", "b", "lab/app:1", {{"k", "v"}});
  const std::string sqlite = podman_sqlite({{"a", "{}"}, {"b", kConfig}});
  // Most bytes are padding. These are the parts that have a meaning.
  const auto change = [&](std::string text, std::size_t from, std::size_t size) {
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      text[from + random() % std::min(size, text.size() - from)] = static_cast<char>(random());
    return random() % 8 == 0 ? text.substr(0, random() % text.size()) : text;
  };
  for (int round = 0; round < 2000; ++round) {
    (void)config_in_bolt(change(bolt, 2 * kBoltPage, 400), "b");
    (void)config_in_sqlite(change(sqlite, 0, sqlite.size()), "b");
    ContainerInfo container;
    container.engine_id = "b";
    (void)apply_containerd_database(change(meta, 2 * kBoltPage, 400), "ci", container);
    CHECK(container.labels.size() <= kMaxLabels);
  }
  for (const char* text : {"", "x", "SQLite format 3"}) {
    CHECK_FALSE(config_in_bolt(text, "b").has_value());
    CHECK_FALSE(config_in_sqlite(text, "b").has_value());
  }
}

// rule: SEC-05
TEST_CASE("many entries of a database that claim the same bytes are not copied") {
  std::vector<BoltEntry> entries;
  for (int i = 0; i < 1000; ++i) entries.push_back({"k" + std::to_string(i), "v"});
  std::string labels = bolt_bucket("labels", entries).value;
  const std::string padding(1 << 20, 'x');
  for (std::size_t i = 0; i < entries.size(); ++i)  // each claims all that follows
    put(labels, 16 + 16 + i * 16 + 12, static_cast<std::uint32_t>(padding.size()));
  const BoltEntry container = {
      "app", bolt_bucket("app", {{"labels", labels + padding, true}}).value, true};
  const BoltEntry spaces =
      bolt_bucket("v1", {bolt_bucket("ci", {bolt_bucket("containers", {container})})});
  ContainerInfo info;
  info.engine_id = "app";
  CHECK(apply_containerd_database(bolt_file({bolt_leaf({spaces}, 2)}), "ci", info));
  CHECK(info.labels.empty());
}
