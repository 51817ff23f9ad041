#include "storage/stored_history.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "base/file.h"
#include "storage/sqlite.h"
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

std::vector<HistoryPoint> all_of(StoredHistory& history) {
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
  Result<StoredHistory> history = StoredHistory::open(state);
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
  Result<StoredHistory> history = StoredHistory::open(state);
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
    Result<StoredHistory> history = StoredHistory::open(state);
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
      const Result<StoredHistory> history = StoredHistory::open(state);
      REQUIRE_FALSE(history);
      CHECK(history.error().kind == ErrorKind::invalid);
      CHECK(history.error().text.find("in use by a running cgphased") != std::string::npos);
    }
    if (crashed) REQUIRE(replace_file(file + "-wal", std::string(32, 'x')));
    const Result<StoredHistory> history = StoredHistory::open(state);
    REQUIRE(history);
    CHECK_FALSE(Store::open({.path = file, .boot_id = "boot-1"}));
  }
}

TEST_CASE_FIXTURE(Directory, "no file, no database and somebody else's are refused") {
  CHECK(StoredHistory::open(state).error().kind == ErrorKind::not_found);
  REQUIRE(replace_file(file, std::string(8192, 'x')));
  CHECK(StoredHistory::open(state).error().kind == ErrorKind::invalid);
  REQUIRE(replace_file(file, ""));
  CHECK(StoredHistory::open(state).error().kind == ErrorKind::invalid);
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
    const Result<StoredHistory> history = StoredHistory::open(state);
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

TEST_CASE_FIXTURE(Directory, "the open blocks of schema 4 are read, and taken over by a store") {
  make_older_file(file, 4, 100);
  const auto before = files_of(state);
  {
    Result<StoredHistory> history = StoredHistory::open(state);
    REQUIRE_MESSAGE(history.has_value(), (history ? "" : history.error().text));
    CHECK(all_of(*history).size() == 100);
  }
  CHECK(files_of(state) == before);
  Store store = open_store(file);
  const auto points = store.history(kOne, WallTime::min(), WallTime::max(), 1000);
  REQUIRE(points.has_value());
  REQUIRE(points->size() == 100);
  CHECK(same(points->back(), busy_point(kOne, 99)));
  CHECK(store.damaged_count() == 0);
}

TEST_CASE_FIXTURE(Directory, "a file of an older schema reads, one of a newer does not") {
  {
    Store store = open_store(file);
    fill(store, 0, 100);
  }
  const auto with_version = [&](int version) {
    const std::string sql = "PRAGMA user_version=" + std::to_string(version);
    REQUIRE(Connection::open(file).value().execute(sql));
    return StoredHistory::open(state);
  };
  auto older = with_version(1);
  REQUIRE_MESSAGE(older.has_value(), (older ? "" : older.error().text));
  CHECK(all_of(*older).size() == 100);
  older = std::unexpected(Error{});
  CHECK(with_version(2).has_value());
  CHECK(with_version(3).has_value());
  CHECK(with_version(4).has_value());
  CHECK(with_version(5).has_value());
  CHECK(with_version(6).error().kind == ErrorKind::unsupported);
  CHECK(with_version(0).error().kind == ErrorKind::unsupported);
}
