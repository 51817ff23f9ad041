// Plain tables out of a store, page by page, and into a file that any SQL client reads.
#include "storage/snapshot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "storage/sqlite.h"
#include "storage/store.h"
#include "storage/table_page.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

std::int64_t number_of(const TablePage& page) {
  return std::get<std::int64_t>(page.rows.back()[0]);
}

Snapshot new_snapshot(const std::string& path) {
  std::ofstream(path).close();
  Result<Snapshot> snapshot = Snapshot::create(path);
  REQUIRE_MESSAGE(snapshot.has_value(), (snapshot ? "" : snapshot.error().text));
  return *std::move(snapshot);
}

const std::vector<TableColumn> kEventColumns = {{"event", "INTEGER"}, {"word", "TEXT"}};

}  // namespace

TEST_CASE("a table is read in pages of bounded rows, each row once") {
  Store store = open_store(":memory:");
  std::vector<JournalDecision> decisions;
  for (std::uint64_t id = 1; id <= 2 * kTablePageRows + 1; ++id)
    decisions.push_back(decision_of(kOne, id, at_second(1)));
  REQUIRE(store.append({}, decisions, {}).has_value());
  std::vector<std::size_t> sizes;
  for (std::int64_t after = 0;;) {
    const auto page = store.table_page("decision", after);
    REQUIRE(page);
    REQUIRE(page->columns.front() == TableColumn{"decision", "INTEGER"});
    sizes.push_back(page->rows.size());
    if (page->rows.empty()) break;
    after = number_of(*page);
  }
  CHECK(sizes.front() <= kTablePageRows);
  std::size_t all = 0;
  for (const std::size_t size : sizes) all += size;
  CHECK(all == decisions.size());
}

TEST_CASE("a page ends with the row that makes it long enough") {
  Store store = open_store(":memory:");
  const std::string long_text(kTablePageBytes, 'x');
  for (const char* image : {"a", "b", "c"})
    REQUIRE(store.save_learned(image, {{"text", long_text}}).has_value());
  const auto page = store.table_page("learned", 0);
  REQUIRE(page);
  CHECK(page->rows.size() == 1);
  CHECK(store.table_page("learned", number_of(*page))->rows.size() == 1);
  CHECK(store.table_page("learned", 3)->rows.empty());
}

TEST_CASE("packed samples and unknown tables are refused") {
  Store store = open_store(":memory:");
  for (const char* table : {"block", "tail", "sqlite_schema", "", "decision; DROP TABLE outcome"}) {
    const auto page = store.table_page(table, 0);
    REQUIRE_FALSE(page);
    CHECK(page.error().kind == ErrorKind::invalid);
  }
}

TEST_CASE("a snapshot has its rows when it is finished, and is a database") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("s.db");
  Snapshot snapshot = new_snapshot(path);
  REQUIRE(snapshot.add_table("event", kEventColumns, true).has_value());
  REQUIRE(snapshot.add_row("event", std::vector<SqlValue>{std::int64_t{9}, "o'clock"}).has_value());
  REQUIRE(snapshot.add_row("event", std::vector<SqlValue>{std::int64_t{10}, {}}).has_value());
  REQUIRE(snapshot.add_index("event", "word").has_value());
  REQUIRE(snapshot.finish().has_value());
  Connection read = Connection::open_unchanged(path, false).value();
  CHECK(read.integer("SELECT count(*) FROM event") == 2);
  CHECK(read.integer("SELECT event FROM event WHERE word = 'o''clock'") == 9);
  CHECK(read.integer("SELECT event FROM event WHERE word IS NULL") == 10);
  CHECK(read.integer("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'") ==
        1);
}

TEST_CASE("no column of another process becomes SQL") {
  const ScratchDirectory scratch;
  Snapshot snapshot = new_snapshot(scratch.path("s.db"));
  const auto refused = [&](const std::string& table, const TableColumn& column) {
    const Status made = snapshot.add_table(table, std::vector<TableColumn>{column}, false);
    return !made && made.error().kind == ErrorKind::invalid;
  };
  CHECK(refused("a\"b", {"x", "TEXT"}));
  CHECK(refused("", {"x", "TEXT"}));
  CHECK(refused("t", {"x\"", "TEXT"}));
  CHECK(refused("t", {"x, y", "TEXT"}));
  CHECK(refused("t", {"", "TEXT"}));
  CHECK(refused("t", {"x", "TEXT CHECK (1)"}));
  CHECK(refused("t", {std::string(65, 'x'), "TEXT"}));
  CHECK_FALSE(snapshot.add_table("t", std::vector<TableColumn>(257, {"x", ""}), false));
  CHECK_FALSE(snapshot.add_table("t", {}, false));
  REQUIRE(snapshot.add_table("t", kEventColumns, false).has_value());
  CHECK_FALSE(snapshot.add_row("t", std::vector<SqlValue>{"one"}));
  CHECK_FALSE(snapshot.add_row("none", std::vector<SqlValue>{"one"}));
}

TEST_CASE("labels of a container leave the host with no export") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"));
  ContainerInfo info;
  info.id = kOne;
  info.name = "web";
  info.labels["token"] = "hunter2";
  REQUIRE(store.add_container(info, at_second(1)).has_value());
  const auto page = store.table_page("container", 0);
  REQUIRE(page.has_value());
  REQUIRE(page->rows.size() == 1);
  CHECK(page->rows[0].size() == page->columns.size());
  CHECK(std::ranges::find(page->columns, "name", &TableColumn::name) != page->columns.end());
  CHECK(std::ranges::find(page->columns, "labels", &TableColumn::name) == page->columns.end());
  for (const SqlValue& value : page->rows[0])
    if (const auto* text = std::get_if<std::string>(&value))
      CHECK(text->find("hunter2") == std::string::npos);
}
