#include "storage/block.h"

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr CgroupId kBlockId{42, 1234};

Sample empty_sample() {
  Sample sample;
  sample.id = kBlockId;
  return sample;
}

BlockWriter write_points(const std::vector<HistoryPoint>& points) {
  BlockWriter writer;
  for (const HistoryPoint& point : points) {
    REQUIRE(writer.accepts(point.time));
    writer.add(point);
  }
  return writer;
}

std::vector<HistoryPoint> read_points(std::string_view payload) {
  const Result<std::vector<HistoryPoint>> points = read_block(payload, kBlockId);
  REQUIRE(points.has_value());
  return *points;
}

}  // namespace

// Whoever adds a field: append it to the columns of block.cpp, count it there, and correct this.
// limits_reset, own_limit_events, programs and limits.frozen have none: what they led to is in the
// journal.
// read_time has none: a point has a time of its own.
TEST_CASE("a new field of Sample or Phase needs a column") {
  const std::size_t programs = alignof(Sample);  // with what fills it up
  const std::size_t frozen = alignof(Limits);    // the same
  CHECK(sizeof(Sample) - programs - frozen - sizeof(Sample::limits_reset) -
            sizeof(Sample::own_limit_events) -
            sizeof(Sample::read_time) == 1376);
  CHECK(sizeof(Phase) == 24);
}

TEST_CASE("every field of a sample is a column of its own") {
  const Sample sample = full_sample(kBlockId, 7);
  const auto points = read_points(write_points({{at_second(1), sample, {}}}).payload());
  REQUIRE(points.size() == 1);
  CHECK(same(sample, points[0].sample));
}

TEST_CASE("the original limits and the host come back with their points") {
  HistoryPoint point{at_second(1), empty_sample(), {}};
  point.original.cpu_max = CpuMax{Microseconds{150'000}, Microseconds{50'000}};
  point.original.memory_max = MemoryLimit{};
  point.host = {7.5, Bytes{3 * kGiB}};
  point.clock_start_ms = 1'700'000'000'123;
  const auto points = read_points(write_points({point}).payload());
  REQUIRE(points.size() == 1);
  CHECK(points[0].original == point.original);
  CHECK(points[0].host.cpu_cores == 7.5);
  CHECK(points[0].host.memory == point.host.memory);
  CHECK(points[0].clock_start_ms == point.clock_start_ms);
}

TEST_CASE("an empty sample stays empty") {
  const auto points = read_points(write_points({{at_second(1), empty_sample(), {}}}).payload());
  REQUIRE(points.size() == 1);
  CHECK(same(points[0].sample, empty_sample()));
  CHECK(same(points[0].phase, Phase{}));
}

TEST_CASE("sixty random points come back bit by bit") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<HistoryPoint> points;
    double second = 0;
    for (int i = 0; i < kBlockPoints; ++i) {
      second += static_cast<double>(random() % 5000) / 1000;
      points.push_back({at_second(second), random_sample(kBlockId, random), random_phase(random)});
    }
    const auto back = read_points(write_points(points).payload());
    REQUIRE(back.size() == points.size());
    for (std::size_t i = 0; i < points.size(); ++i) CHECK(same(points[i], back[i]));
  }
}

TEST_CASE("times before 1970 and at the ends of the clock come back") {
  for (const std::int64_t ns : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
    CAPTURE(ns);
    const WallTime time{std::chrono::nanoseconds(ns)};
    CHECK(read_points(write_points({{time, empty_sample(), {}}}).payload())[0].time == time);
  }
}

TEST_CASE("a block takes sixty points and not one more") {
  BlockWriter writer;
  for (int i = 0; i < kBlockPoints - 1; ++i) writer.add({at_second(i), empty_sample(), {}});
  CHECK(writer.accepts(at_second(60)));
  writer.add({at_second(60), empty_sample(), {}});
  CHECK_FALSE(writer.accepts(at_second(61)));
  CHECK(writer.count() == kBlockPoints);
}

TEST_CASE("a block takes the same time again but no earlier one") {
  const BlockWriter writer = write_points({{at_second(10), empty_sample(), {}}});
  CHECK(writer.accepts(at_second(10)));
  CHECK_FALSE(writer.accepts(at_second(10) - std::chrono::nanoseconds(1)));
}

TEST_CASE("a block knows its first and last time") {
  const BlockWriter writer =
      write_points({{at_second(1), empty_sample(), {}}, {at_second(4), empty_sample(), {}}});
  CHECK(writer.first_ns() == at_second(1).time_since_epoch().count());
  CHECK(writer.last_ns() == at_second(4).time_since_epoch().count());
}

TEST_CASE("a point of a busy container takes less than fifty bytes") {
  BlockWriter writer;
  for (std::uint64_t i = 0; i < kBlockPoints; ++i) writer.add(busy_point(kBlockId, 1000 + i));
  CHECK(writer.payload().size() < 50 * kBlockPoints);
}

TEST_CASE("a block cut off anywhere is an error or its first points") {
  std::mt19937_64 random(3);
  std::vector<HistoryPoint> points;
  for (int i = 0; i < 5; ++i)
    points.push_back({at_second(i), random_sample(kBlockId, random), random_phase(random)});
  const std::string payload(write_points(points).payload());
  for (std::size_t size = 0; size < payload.size(); ++size) {
    CAPTURE(size);
    const auto part = read_block(std::string_view(payload).substr(0, size), kBlockId);
    if (!part) continue;
    REQUIRE(part->size() < points.size());
    for (std::size_t i = 0; i < part->size(); ++i) CHECK(same((*part)[i], points[i]));
  }
}

TEST_CASE("any bytes are refused or read, never more than sixty points") {
  std::mt19937_64 random(11);
  BlockWriter writer;
  for (std::uint64_t i = 0; i < kBlockPoints; ++i) writer.add(busy_point(kBlockId, i));
  for (int round = 0; round < rounds(20000); ++round) {
    std::string bytes(writer.payload());
    for (std::uint64_t flips = 1 + random() % 8; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto points = read_block(bytes, kBlockId);
    if (points)
      CHECK(points->size() <= kBlockPoints);
    else
      CHECK(points.error().kind == ErrorKind::io);
  }
}

TEST_CASE("a block of sixty-one points is refused") {
  // A header and the time, then per point one byte of time (from the second on) and an empty mask.
  const std::string sixty = "\x5f" + std::string(2 + 2 * (kBlockPoints - 1), '\0');
  REQUIRE(read_block(sixty, kBlockId).has_value());
  CHECK(read_block(sixty, kBlockId)->size() == kBlockPoints);
  CHECK_FALSE(read_block(sixty + std::string(2, '\0'), kBlockId).has_value());
}

TEST_CASE("a block with fewer columns leaves the later fields absent") {
  const std::string bytes("\x02\x00\x01\x03\x10\x02", 6);  // columns 0 and 1; usage_usec = 7
  const auto points = read_points(bytes);
  REQUIRE(points.size() == 1);
  CHECK(points[0].sample.cpu.usage_usec == 7);
  CHECK(points[0].sample.cpu.user_usec == 0);
  CHECK_FALSE(points[0].sample.cpu.system_usec.has_value());
}

TEST_CASE("a block with one column more than known is refused") {
  const std::string known("\x5f\x00\x00", 3);
  const std::string more("\x60\x00\x00", 3);
  CHECK(read_block(known, kBlockId).has_value());
  CHECK_FALSE(read_block(more, kBlockId).has_value());
}
