// Open blocks in table recent: packed, put together again, left by a process that ended badly, and
// damaged.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "base/crc32.h"
#include "storage/block.h"
#include "storage/recent_pages.h"
#include "storage/schema.h"
#include "storage/sqlite.h"
#include "storage/store.h"
#include "storage/stored_history.h"
#include "storage/varint.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// One container's open block over several flushes, and the pages that each flush made.
struct GrowingBlock {
  BlockWriter writer;
  std::vector<std::vector<std::string>> flushes;

  void flush(std::uint64_t points, std::int64_t container = 1) {
    const std::size_t stored = writer.payload().size();
    for (std::uint64_t i = 0; i < points; ++i)
      writer.add(busy_point(kOne, static_cast<std::uint64_t>(writer.count())));
    RecentPacker packer(flushes.size() + 1);
    packer.add(container, 1, stored, writer.payload().substr(stored));
    flushes.push_back(packer.finish());
  }
  RecentReader read() const {
    RecentReader reader;
    for (const auto& pages : flushes)
      for (const std::string& page : pages) reader.add(page);
    return reader;
  }
};

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

// The rows of table recent after so many seconds of so many containers, one after the other.
std::int64_t slots_after(
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& stretches) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  crash_after(path, [&](Store& store) {
    std::uint64_t second = 0;
    for (const auto& [seconds, containers] : stretches)
      for (const std::uint64_t end = second + seconds; second < end; ++second) {
        std::vector<HistoryPoint> points;
        for (std::uint64_t inode = 1; inode <= containers; ++inode)
          points.push_back(busy_point({42, inode}, second));
        if (!store.append(points, {}, {})) ::_exit(2);
      }
    if (!store.flush()) ::_exit(3);
  });
  return *Connection::open(path).value().integer("SELECT count(*) FROM recent");
}

}  // namespace

TEST_CASE("an open block comes back byte by byte from the pages of its flushes, in any order") {
  GrowingBlock block;
  for (const std::uint64_t points : {10, 1, 30, 19}) block.flush(points);
  std::ranges::reverse(block.flushes);
  std::uint64_t damaged = 0;
  const auto blocks = block.read().blocks(damaged);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].payload == block.writer.payload());
  CHECK(blocks[0].count == 60);
  CHECK(blocks[0].first_ns == block.writer.first_ns());
  CHECK(blocks[0].last_ns == block.writer.last_ns());
  CHECK(damaged == 0);
}

TEST_CASE("pages are of one size, and what does not fit goes on in the next") {
  RecentPacker packer(1);
  std::mt19937_64 random(5);
  std::map<std::int64_t, BlockWriter> writers;
  for (std::int64_t container = 1; container <= 300; ++container) {
    for (int i = 0; i < 10; ++i)
      writers[container].add({at_second(i), random_sample(kOne, random), random_phase(random)});
    packer.add(container, 1, 0, writers[container].payload());
  }
  RecentReader reader;
  for (const std::string& page : packer.finish()) {
    REQUIRE(page.size() == kRecentPageBytes);
    reader.add(page);
  }
  std::uint64_t damaged = 0;
  const auto blocks = reader.blocks(damaged);
  REQUIRE(blocks.size() == 300);
  for (const RecentBlock& block : blocks)
    CHECK(block.payload == writers[block.container].payload());
  CHECK(damaged == 0);
}

TEST_CASE("a block that the last flush does not tell of is not open") {
  GrowingBlock block;
  block.flush(10);
  RecentPacker later(2);
  RecentReader reader = block.read();
  for (const std::string& page : later.finish()) reader.add(page);
  std::uint64_t damaged = 0;
  CHECK(reader.blocks(damaged).empty());
  CHECK(damaged == 0);
}

TEST_CASE("what came before a page that is damaged stays") {
  GrowingBlock block;
  for (const std::uint64_t points : {10, 10, 10}) block.flush(points);
  for (std::size_t flush = 0; flush < 3; ++flush) {
    CAPTURE(flush);
    GrowingBlock copy = block;
    copy.flushes[flush][0][100] ^= 1;
    std::uint64_t damaged = 0;
    const auto blocks = copy.read().blocks(damaged);
    CHECK(damaged >= 1);
    REQUIRE(blocks.size() == (flush == 0 ? 0 : 1));
    if (flush > 0) CHECK(blocks[0].count == static_cast<std::int64_t>(10 * flush));
  }
}

TEST_CASE("what is no page is damaged, whatever it says") {
  RecentReader reader;
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, kRecentPageBytes - 1,
                                 kRecentPageBytes, kRecentPageBytes + 1})
    reader.add(std::string(size, '\x7f'));
  std::uint64_t damaged = 0;
  CHECK(reader.blocks(damaged).empty());
  CHECK(damaged == 5);
}

TEST_CASE("a page is damaged that tells of no container, or of a block later than itself") {
  BlockWriter writer;
  writer.add(busy_point(kOne, 1));
  // The page of flush 2 with the numbers of its one entry.
  const auto damage_of = [&](std::uint64_t container, std::uint64_t flushes) {
    std::string page(4, '\0');
    page += '\2' + std::string(7, '\0');
    char numbers[4 * kLargestVarint];
    char* end = numbers;
    for (const std::uint64_t number :
         {container, flushes, std::uint64_t{0}, std::uint64_t{writer.payload().size()}})
      end = encode_varint(end, number);
    page.append(numbers, end).append(writer.payload()).resize(kRecentPageBytes);
    const std::uint32_t sum = crc32c(std::string_view(page).substr(4));
    for (std::size_t i = 0; i < 4; ++i) page[i] = static_cast<char>(sum >> (8 * i));
    RecentReader reader;
    reader.add(page);
    std::uint64_t damaged = 0;
    const auto blocks = reader.blocks(damaged);
    CHECK(blocks.size() + damaged == 1);
    return damaged;
  };
  CHECK(damage_of(7, 1) == 0);
  CHECK(damage_of(INT64_MAX, 2) == 0);
  CHECK(damage_of(std::uint64_t{INT64_MAX} + 1, 1) == 1);
  CHECK(damage_of(7, 3) == 1);
}

TEST_CASE("after kill -9 each sample that was flushed is there once, whoever reads") {
  for (const std::uint64_t seconds : {5, 98, 389, 700}) {
    CAPTURE(seconds);
    const ScratchDirectory scratch;
    const std::string path = scratch.path("history.db");
    crash_after(path, [&](Store& store) { live(store, seconds, seconds); });
    Store alike = open_store(":memory:");
    const Seconds expected = live(alike, seconds, seconds);
    std::size_t read = 0;
    {
      Result<StoredHistory> history = StoredHistory::open(scratch.path("."));
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

TEST_CASE("a damaged page costs open blocks that lie in it, and nothing comes twice") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  crash_after(path, [&](Store& store) { live(store, 1, 245); });
  std::int64_t slots = 0;
  {
    Result<Connection> connection = Connection::open(path);
    REQUIRE(connection.has_value());
    slots = *connection->integer("SELECT count(*) FROM recent");
  }
  REQUIRE(slots > 5);
  Store alike = open_store(":memory:");
  const Seconds expected = live(alike, 1, 245);
  for (std::int64_t slot = 1; slot <= slots; ++slot) {
    CAPTURE(slot);
    const std::string copy = scratch.path("copy" + std::to_string(slot));
    std::filesystem::copy_file(path, copy);
    REQUIRE(Connection::open(copy).value().execute(
        "UPDATE recent SET page = substr(page,1,50) || x'5a5a' || substr(page,53) WHERE slot = " +
        std::to_string(slot)));
    Store store = open_store(copy);
    CHECK(store.damaged_count() >= 1);
    std::size_t lost_of = 0;
    for (const auto& [id, some] : expected) {
      const auto points = all_of(store, id);
      lost_of += points.size() != some.size();
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (i > 0) REQUIRE(points[i].time > points[i - 1].time);
        REQUIRE(same(points[i], busy_point(id, second_of(points[i]))));
      }
      CHECK(points.size() + kBlockPoints >= some.size());
    }
    CHECK(lost_of < 25);
  }
}

TEST_CASE("table recent does not grow: rows that are needed no more are written anew") {
  const std::int64_t a_minute = slots_after({{70, 20}});
  CHECK(a_minute > 10);
  CHECK(slots_after({{1000, 20}}) <= a_minute + a_minute / 4);
}

TEST_CASE("rows of a time with many containers are given back") {
  CHECK(slots_after({{70, 400}}) > 200);
  CHECK(slots_after({{70, 400}, {1500, 1}}) < 20);
}
