// Open blocks in table recent: after kill -9, damaged, and deleted once they are full.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "storage/block.h"
#include "storage/sqlite.h"
#include "storage/store.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// Runs `body` in a child that ends without closing anything.
template <class Body>
void crash_after(const std::string& path, Body body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Store store = open_store(path);
    body(store);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
}

using Seconds = std::map<CgroupId, std::vector<std::uint64_t>>;

// What containers that come, go, pause and are read at different paces do in so many seconds; the
// points that are in the file when it returns.
Seconds live(Store& store, std::uint64_t seed, std::uint64_t seconds) {
  std::mt19937_64 random(seed);
  Seconds flushed, since;
  for (std::uint64_t second = 0; second < seconds; ++second) {
    std::vector<HistoryPoint> points;
    for (std::uint64_t inode = 1; inode <= 40; ++inode) {
      const std::uint64_t pace = 1 + inode % 7 * (inode % 3);
      const bool alive = (second / 50 + inode) % 5 != 0;
      if (!alive || second % pace != 0 || random() % 16 == 0) continue;
      points.push_back(busy_point({42, inode}, second));
      since[{42, inode}].push_back(second);
    }
    if (!store.append(points, {}, {})) ::_exit(2);
    if (second % 97 != 0 && second + 1 != seconds) continue;
    if (!store.flush()) ::_exit(3);
    for (auto& [id, some] : since)
      flushed[id].insert(flushed[id].end(), some.begin(), some.end());
    since.clear();
  }
  return flushed;
}

std::vector<HistoryPoint> all_of(Store& store, CgroupId id) {
  const auto points = store.history(id, WallTime::min(), WallTime::max(), 1 << 20);
  REQUIRE(points.has_value());
  return *points;
}

std::uint64_t second_of(const HistoryPoint& point) {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::seconds>(point.time - at_second(0)).count());
}

// The rows of table recent, in the file that a killed process leaves after `seconds` of kOne.
std::int64_t rows_after(std::uint64_t seconds) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  crash_after(path, [&](Store& store) {
    for (std::uint64_t second = 0; second < seconds; ++second)
      if (!store.append({busy_point(kOne, second)}, {}, {})) ::_exit(2);
    if (!store.flush()) ::_exit(3);
  });
  return *Connection::open(path).value().integer("SELECT count(*) FROM recent");
}

}  // namespace

TEST_CASE("after kill -9 each flushed sample is there once, for a store and for a reader") {
  for (const std::uint64_t seconds : {5, 98, 389, 700}) {
    CAPTURE(seconds);
    const ScratchDirectory scratch;
    const std::string path = scratch.path("history.db");
    crash_after(path, [&](Store& store) { live(store, seconds, seconds); });
    Store alike = open_store(":memory:");
    const Seconds expected = live(alike, seconds, seconds);
    std::size_t read = 0;
    {
      Result<Store> history = Store::open_for_reading(path);
      REQUIRE(history.has_value());
      const auto records = history->records(0, 100);
      REQUIRE(records.has_value());
      for (const StoredRecord& record : *records)
        read +=
            history->history_of(record.record, WallTime::min(), WallTime::max(), 1 << 20)->size();
    }
    Store store = open_store(path);
    std::size_t wanted = 0;
    for (const auto& [id, some] : expected) {
      const auto points = all_of(store, id);
      REQUIRE(points.size() == some.size());
      for (std::size_t i = 0; i < some.size(); ++i)
        REQUIRE(same(points[i], busy_point(id, some[i])));
      wanted += some.size();
    }
    CHECK(read == wanted);
    CHECK(store.damaged_count() == 0);
  }
}

TEST_CASE("a damaged row of table recent loses the rest of its block only") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  crash_after(path, [&](Store& store) { live(store, 1, 245); });
  const std::int64_t rows = *Connection::open(path).value().integer("SELECT max(part) FROM recent");
  REQUIRE(rows > 5);
  Store alike = open_store(":memory:");
  const Seconds expected = live(alike, 1, 245);
  for (std::int64_t part = 1; part <= rows; part += 1 + rows / 8) {
    CAPTURE(part);
    const std::string copy = scratch.path("copy" + std::to_string(part));
    std::filesystem::copy_file(path, copy);
    std::int64_t damaged = 0;
    {
      Result<Connection> connection = Connection::open(copy);
      const std::string row = " WHERE part = " + std::to_string(part);
      damaged = *connection->integer("SELECT count(*) FROM recent" + row);
      REQUIRE(connection->execute("UPDATE recent SET payload = payload || x'5a'" + row));
    }
    Store store = open_store(copy);
    std::int64_t shorter = 0;
    for (const auto& [id, some] : expected) {
      const auto points = all_of(store, id);
      shorter += points.size() != some.size();
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (i > 0) REQUIRE(points[i].time > points[i - 1].time);
        REQUIRE(same(points[i], busy_point(id, second_of(points[i]))));
      }
      CHECK(points.size() + kBlockPoints >= some.size());
    }
    CHECK(shorter == damaged);
    CHECK(store.damaged_count() == static_cast<std::uint64_t>(damaged));
    REQUIRE(store.append({busy_point(kOne, 300)}, {}, {}));
    REQUIRE(store.flush());
    CHECK(all_of(store, kOne).size() >= 1);
  }
}

TEST_CASE("one row per flush, deleted with the full block or the end of the container") {
  CHECK(rows_after(10) == 1);
  CHECK(rows_after(58) == 6);
  CHECK(rows_after(62) == 1);
  CHECK(rows_after(1000) <= 6);
}
