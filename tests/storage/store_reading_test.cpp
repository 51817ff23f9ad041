// The file of a stopped daemon, opened for reading.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "storage/schema.h"
#include "storage/sqlite.h"
#include "storage/store.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr CgroupId kId{41, 7};

// Every file of a directory with its content.
std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files[entry.path()] = read_file(entry.path(), 1 << 24).value();
  return files;
}

void fill(Store& store, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t second = from; second < to; ++second)
    REQUIRE(store.append({busy_point(kId, second)}, {}, {}));
  REQUIRE(store.flush());
}

std::vector<HistoryPoint> all_of(Store& history) {
  const auto records = history.records(0, 10);
  REQUIRE(records);
  REQUIRE(records->size() == 1);
  const std::int64_t record = records->front().record;
  const auto points = history.history_of(record, at_second(0), at_second(1e6), 999);
  REQUIRE(points);
  return *points;
}

struct Directory {
  ScratchDirectory scratch;
  std::string state = scratch.path(".");
  std::string file = scratch.path("history.db");
};

}  // namespace

TEST_CASE_FIXTURE(Directory, "the file of a store that was closed reads without a change to it") {
  {
    Store store = open_store(file);
    fill(store, 0, 100);
  }
  const auto before = files_of(state);
  Result<Store> history = Store::open_for_reading(file);
  REQUIRE_MESSAGE(history.has_value(), (history ? "" : history.error().text));
  const auto points = all_of(*history);
  REQUIRE(points.size() == 100);
  HistoryPoint expected = busy_point(kId, 99);
  expected.sample.id = points[99].sample.id;
  CHECK(same(points[99], expected));
  CHECK(files_of(state) == before);
}

TEST_CASE_FIXTURE(Directory, "blocks of a file that overlap lose no sample between the pages") {
  {
    Store store = open_store(file);
    fill_over_step_back(store);
  }
  Result<Store> history = Store::open_for_reading(file);
  REQUIRE(history.has_value());
  const auto times = times_of_pages(
      [&](WallTime from) { return history->history_of(1, from, WallTime::max(), 120); });
  CHECK(times.size() == 210);
}

TEST_CASE_FIXTURE(Directory, "a file that a crash left with its -wal reads whole, and stays so") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Store store = open_store(file);
    fill(store, 0, 90);
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const auto before = files_of(state);
  REQUIRE(before.size() == 2);
  {
    Result<Store> history = Store::open_for_reading(file);
    REQUIRE_MESSAGE(history.has_value(), (history ? "" : history.error().text));
    CHECK(all_of(*history).size() == 90);
  }
  CHECK(files_of(state) == before);
}

TEST_CASE_FIXTURE(Directory, "while it is read no store opens the file, and the other way round") {
  for (const bool crashed : {false, true}) {
    {
      std::optional<Store> store = open_store(file);
      fill(*store, 0, 10);
      const Result<Store> history = Store::open_for_reading(file);
      REQUIRE_FALSE(history);
      CHECK(history.error().kind == ErrorKind::invalid);
      CHECK(history.error().text.find("in use by a running cgphased") != std::string::npos);
    }
    if (crashed) REQUIRE(replace_file(file + "-wal", std::string(32, 'x')));
    const Result<Store> history = Store::open_for_reading(file);
    REQUIRE(history);
    CHECK_FALSE(Store::open({.path = file, .boot_id = "boot-1"}));
  }
}

TEST_CASE_FIXTURE(Directory, "a missing file and a file that is not a database are refused") {
  CHECK(Store::open_for_reading(file).error().kind == ErrorKind::not_found);
  REQUIRE(replace_file(file, std::string(8192, 'x')));
  CHECK(Store::open_for_reading(file).error().kind == ErrorKind::invalid);
  REQUIRE(replace_file(file, ""));
  CHECK(Store::open_for_reading(file).error().kind == ErrorKind::invalid);
  CHECK(files_of(state).size() == 1);
}

// A trigger or view of a hostile file may use nothing that is not declared harmless, and no SQL of
// it rewrites the schema.
constexpr const char* kView = "ALTER TABLE container RENAME TO kept; CREATE VIEW container AS "
                              "SELECT * FROM kept, pragma_database_list";
constexpr const char* kTrigger = "CREATE TRIGGER planted AFTER INSERT ON container BEGIN "
                                 "SELECT file FROM pragma_database_list; END";

// rule: SEC-06
TEST_CASE_FIXTURE(Directory, "what the schema of a file would run is refused") {
  { Store store = open_store(file); }
  SUBCASE("a file that is read") {
    REQUIRE(Connection::open(file).value().execute(kView));
    const Result<Store> history = Store::open_for_reading(file);
    REQUIRE_FALSE(history.has_value());
    CHECK(history.error().text.find("unsafe use of virtual table") != std::string::npos);
  }
  SUBCASE("a file that is written") {
    REQUIRE(Connection::open(file).value().execute(kTrigger));
    const Result<Store> store = Store::open({.path = file, .boot_id = "boot-1"});
    REQUIRE_FALSE(store.has_value());
    CHECK(store.error().text.find("unsafe use of virtual table") != std::string::npos);
  }
}

// rule: SEC-06
TEST_CASE_FIXTURE(Directory, "no SQL rewrites the schema of a file") {
  { Store store = open_store(file); }
  const std::string rewrite = "PRAGMA writable_schema=ON; PRAGMA query_only=OFF;"
                              "UPDATE sqlite_schema SET sql='' WHERE name='container'";
  CHECK_FALSE(Connection::open(file).value().execute(rewrite));
  CHECK_FALSE(Connection::open_unchanged(file, true).value().execute(rewrite));
}

TEST_CASE_FIXTURE(Directory, "a file of another schema is refused") {
  {
    Store store = open_store(file);
    fill(store, 0, 100);
  }
  const auto with_version = [&](std::int64_t version) {
    const std::string sql = "PRAGMA user_version=" + std::to_string(version);
    REQUIRE(Connection::open(file).value().execute(sql));
    return Store::open_for_reading(file);
  };
  for (const std::int64_t other : {std::int64_t{0}, kSchema - 1, kSchema + 1}) {
    CAPTURE(other);
    const auto refused = with_version(other);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::unsupported);
  }
  CHECK(with_version(kSchema).has_value());
}

TEST_CASE_FIXTURE(Directory, "a file that is read is never written") {
  {
    Store store = open_store(file);
    fill(store, 0, 10);
  }
  const auto before = files_of(state);
  {
    Result<Store> history = Store::open_for_reading(file);
    REQUIRE(history.has_value());
    CHECK_FALSE(history->append({}, {decision_of(kId, 1, at_second(1))}, {}).has_value());
    CHECK_FALSE(history->save_learned("image", nlohmann::json(1)).has_value());
  }
  CHECK(files_of(state) == before);
}
