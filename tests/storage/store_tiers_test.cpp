// Samples that grow old: thinned twice, with their peaks, and gone at last.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "storage/store.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;
using namespace std::chrono_literals;

namespace {

constexpr TierAges kShort{1h, 4h, 8h};
constexpr std::uint64_t kRunSeconds = 12 * 3600;
constexpr std::uint64_t kSpike = kRunSeconds - 6 * 3600 + 7;  // six hours before the end

HistoryPoint point_of(std::uint64_t second) {
  HistoryPoint point = busy_point(kOne, second);
  point.sample.cpu.usage_usec = second * 250'000 + (second >= kSpike ? 4'000'000 : 0);
  if (second == kSpike) point.sample.memory.anon_bytes = 3 * kGiB;
  return point;
}

Store open_tiers(const std::string& path) {
  Result<Store> store = Store::open({.path = path, .boot_id = "boot-1", .cap = Bytes{64 * kMiB},
                                      .tier_ages = kShort});
  REQUIRE_MESSAGE(store.has_value(), (store ? "" : store.error().text));
  return std::move(*store);
}

void fill(Store& store) {
  for (std::uint64_t second = 0; second < kRunSeconds; ++second)
    REQUIRE(store.append({point_of(second)}, {}, {}).has_value());
  REQUIRE(store.flush().has_value());
}

// Those from `from` on and before `until`, in hours before the end.
std::size_t count_between(const std::vector<HistoryPoint>& points, double from, double until) {
  const auto time = [](double hours) { return at_second(kRunSeconds - hours * 3600); };
  return static_cast<std::size_t>(std::ranges::count_if(points, [&](const HistoryPoint& point) {
    return point.time >= time(from) && point.time < time(until);
  }));
}

constexpr std::uint64_t kHour = 3600, kFarAhead = 40 * 24 * kHour;

// From <= second < to.
void add_seconds(Store& store, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t second = from; second < to; ++second)
    REQUIRE(store.append({busy_point(kOne, second)}, {}, {}).has_value());
  REQUIRE(store.flush().has_value());
}

std::size_t count_of(Store& store) {
  return store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20)->size();
}

void check_tiers(const std::vector<HistoryPoint>& points) {
  CHECK(count_between(points, 1, 0) == 3600);
  // A quarter of an hour, and an hour, are waited for until they fill a block.
  CHECK(count_between(points, 3.9, 1.4) == doctest::Approx(2.5 * 240).epsilon(0.02));
  CHECK(count_between(points, 7.9, 5.5) == doctest::Approx(2.4 * 60).epsilon(0.05));
  CHECK(count_between(points, 12, 9.5) == 0);
  const auto peak = std::ranges::max(points, {}, [](const HistoryPoint& point) {
    return point.sample.memory.anon_bytes.value_or(0);
  });
  CHECK(peak.sample.memory.anon_bytes == 3 * kGiB);
  const auto busiest = std::ranges::max(points, {}, [](const HistoryPoint& point) {
    return point.peak_cpu_cores.value_or(0);
  });
  CHECK(busiest.peak_cpu_cores == doctest::Approx(4.25).epsilon(0.001));
  CHECK(busiest.time == peak.time);
  CHECK(std::ranges::is_sorted(points, {}, &HistoryPoint::time));
}

}  // namespace

TEST_CASE("samples are thinned at their ages, keep their peaks, and go at last") {
  const ScratchDirectory scratch;
  {
    Store store = open_tiers(scratch.path("history.db"));
    fill(store);
    const auto points = store.history(kOne, at_second(0), at_second(1e6), 1 << 20);
    REQUIRE(points.has_value());
    check_tiers(*points);
    CHECK(store.damaged_count() == 0);
    // A page at a time, as `record` asks.
    const auto page = store.history(kOne, at_second(0), at_second(1e6), 120);
    REQUIRE(page.has_value());
    REQUIRE(page->size() == 120);
    for (std::size_t i = 0; i < page->size(); ++i) REQUIRE(same((*page)[i], (*points)[i]));
  }
  auto stored = Store::open_for_reading(scratch.path("history.db"));
  REQUIRE(stored.has_value());
  const auto points = stored->history_of(1, at_second(0), at_second(1e6), 1 << 20);
  REQUIRE(points.has_value());
  check_tiers(*points);
}

TEST_CASE("a container without samples is deleted, even far from the cap") {
  const ScratchDirectory scratch;
  Store store = open_tiers(scratch.path("history.db"));
  constexpr CgroupId kBrief{42, 4711};
  ContainerInfo info;
  info.id = kBrief;
  info.name = "brief";
  REQUIRE(store.add_container(info, at_second(0)));
  for (std::uint64_t second = 0; second < 120; ++second)
    REQUIRE(store.append({busy_point(kBrief, second)}, {}, {}).has_value());
  CHECK(store.last_container("brief")->has_value());
  fill(store);
  CHECK_FALSE(store.last_container("brief")->has_value());
  CHECK(store.records(0, 10)->size() == 1);
}

TEST_CASE("what a clock that was set back adds to hours that are thinned is in the pages, too") {
  Store store = open_tiers(":memory:");
  fill(store);
  const std::uint64_t back = kRunSeconds - 15 * kHour / 2;  // of which the file has coarse samples
  for (std::uint64_t second = back; second < back + 100; ++second) {
    HistoryPoint point = busy_point(kOne, second);
    point.time = at_second(static_cast<double>(second) + 0.5);
    REQUIRE(store.append({point}, {}, {}).has_value());
  }
  REQUIRE(store.flush().has_value());
  const auto points = store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
  REQUIRE(points.has_value());
  std::set<WallTime> times;
  for (const HistoryPoint& point : *points) times.insert(point.time);
  const auto paged = times_of_pages(
      [&](WallTime from) { return store.history(kOne, from, WallTime::max(), 120); });
  CHECK(paged == std::vector(times.begin(), times.end()));
}

TEST_CASE("a clock that is far ahead for half a minute takes nothing away") {
  Store store = open_tiers(":memory:");
  add_seconds(store, 0, 2 * kHour);
  const std::size_t before = count_of(store);
  add_seconds(store, kFarAhead, kFarAhead + 30);
  add_seconds(store, 2 * kHour, 2 * kHour + 1800);
  CHECK(count_of(store) == before + 30 + 1800);
  // An hour after it was set back ages count again.
  add_seconds(store, 2 * kHour + 1800, 4 * kHour);
  CHECK(count_of(store) < before + 30 + 2 * kHour);
}

TEST_CASE("after weeks without a daemon samples grow old from the second hour on") {
  const ScratchDirectory scratch;
  {
    Store store = open_tiers(scratch.path("h.db"));
    add_seconds(store, 0, 200);
  }
  Store store = open_tiers(scratch.path("h.db"));
  add_seconds(store, kFarAhead, kFarAhead + kHour);
  CHECK(count_of(store) == 200 + kHour);
  add_seconds(store, kFarAhead + kHour, kFarAhead + kHour + 100);
  CHECK(count_of(store) < 200 + kHour);
}

TEST_CASE("a clock that is far behind takes nothing away") {
  Store store = open_tiers(":memory:");
  for (std::uint64_t second = 0; second < 120; ++second)
    REQUIRE(store.append({busy_point(kOne, 100'000'000 + second)}, {}, {}).has_value());
  fill(store);
  const auto points = store.history(kOne, at_second(0), at_second(2e8), 1 << 20);
  REQUIRE(points.has_value());
  CHECK(points->size() == kRunSeconds + 120);
}
