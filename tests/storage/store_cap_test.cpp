#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "storage/schema.h"
#include "storage/store.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr Bytes kCap{2 * kMiB};

// One tick of ten containers.
std::vector<HistoryPoint> tick(std::uint64_t second) {
  std::vector<HistoryPoint> points;
  for (std::uint64_t inode = 1; inode <= 10; ++inode)
    points.push_back(busy_point({42, inode}, second));
  return points;
}

// More than the cap holds.
constexpr std::uint64_t kSeconds = 12000;

}  // namespace

TEST_CASE("a file at its cap goes on, stays below it, and keeps the newest samples") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"), kCap);
  std::uint64_t largest = 0;
  for (std::uint64_t second = 0; second < kSeconds; ++second) {
    REQUIRE(store.append(tick(second), {}, {}).has_value());
    largest = std::max(largest, store.size_bytes());
  }
  CHECK(largest <= kCap.value);
  CHECK(largest > kCap.value / 2);
  const auto newest = store.history(kOne, at_second(kSeconds - 100), at_second(kSeconds), 1000);
  REQUIRE(newest.has_value());
  CHECK(newest->size() == 100);
}

TEST_CASE("the samples that stay at the cap have no hole, and the newest are as they came") {
  Store store = open_store(":memory:", kCap);
  for (std::uint64_t second = 0; second < kSeconds; ++second)
    REQUIRE(store.append(tick(second), {}, {}).has_value());
  const auto points = store.history(kOne, at_second(0), at_second(kSeconds), 100000);
  REQUIRE(points.has_value());
  constexpr std::size_t kAsTheyCame = 600;
  REQUIRE(points->size() > kAsTheyCame);
  for (std::uint64_t i = 0; i < kAsTheyCame; ++i)
    REQUIRE(same((*points)[points->size() - kAsTheyCame + i],
                 busy_point(kOne, kSeconds - kAsTheyCame + i)));
  for (std::size_t i = 1; i < points->size(); ++i)
    REQUIRE((*points)[i].time - (*points)[i - 1].time <= std::chrono::seconds(61));
}

TEST_CASE("at the cap samples are thinned first, and then the oldest go") {
  Store store = open_store(":memory:", kCap);
  const auto oldest_after = [&store](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t second = from; second < to; ++second)
      REQUIRE(store.append(tick(second), {}, {}).has_value());
    const auto points = store.history(kOne, at_second(0), at_second(1e6), 1);
    REQUIRE(points.has_value());
    REQUIRE(points->size() == 1);
    return points->front();
  };
  // More than the cap holds as it came, but nothing is missing yet.
  const HistoryPoint thinned = oldest_after(0, 4000);
  CHECK(thinned.peak_cpu_cores.has_value());
  CHECK(thinned.time < at_second(60));
  CHECK(oldest_after(4000, 100'000).time > at_second(5000));
}

TEST_CASE("the journal outlives samples at the cap") {
  Store store = open_store(":memory:", kCap);
  REQUIRE(store.append({}, {decision_of(kOne, 1, at_second(0))}, {}).has_value());
  for (std::uint64_t second = 0; second < kSeconds; ++second)
    REQUIRE(store.append(tick(second), {}, {}).has_value());
  CHECK(read_decisions(store, kOne, at_second(kSeconds), 10)->size() == 1);
}

TEST_CASE("a journal alone stays below the cap too and keeps its newest") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"), kMinimumCap);
  std::uint64_t id = 0;
  for (std::uint64_t second = 0; second < 300; ++second) {
    std::vector<JournalDecision> decisions;
    std::vector<JournalOutcome> outcomes;
    for (int i = 0; i < 10; ++i) {
      decisions.push_back(decision_of(kOne, ++id, at_second(static_cast<double>(second))));
      outcomes.push_back(outcome_of(kOne, id, at_second(static_cast<double>(second))));
    }
    REQUIRE(store.append({busy_point(kOne, second)}, decisions, outcomes).has_value());
    CHECK(store.size_bytes() <= kMinimumCap.value);
  }
  const auto newest = read_decisions(store, std::nullopt, at_second(1000), 1);
  REQUIRE(newest.has_value());
  REQUIRE(newest->size() == 1);
  CHECK((*newest)[0].decision.decision_id == id);
}

TEST_CASE("what was not written never pushes out what was") {
  Store store = open_store(":memory:", kMinimumCap);
  std::uint64_t id = 0;
  for (std::uint64_t second = 0; second < 300; ++second) {
    const WallTime time = at_second(static_cast<double>(second));
    std::vector<JournalDecision> decisions;
    for (int i = 0; i < 20; ++i) {
      decisions.push_back(decision_of(kOne, ++id, time));
      if (i > 0) decisions.back().decision.verdict = Verdict::cool_down;
    }
    REQUIRE(store.append({busy_point(kOne, second)}, decisions, {}).has_value());
  }
  const auto found = read_decisions(store, kOne, at_second(1000), 10'000);
  REQUIRE(found.has_value());
  const auto written = std::ranges::count_if(*found, [](const JournalDecision& entry) {
    return entry.decision.verdict == Verdict::allowed;
  });
  CHECK(written > 150);  // a quarter of the file; the others had 19 times as many rows
  CHECK(found->size() < id / 3);  // with those since the last flush
}

TEST_CASE("containers of which nothing is left are forgotten at the cap") {
  Store store = open_store(":memory:", kMinimumCap);
  // Each container lives for two minutes; a day of them.
  for (std::uint64_t minute = 0; minute < 24 * 30; ++minute) {
    std::vector<HistoryPoint> points;
    for (std::uint64_t second = 0; second < 120; second += 2)
      for (std::uint64_t twin = 0; twin < 4; ++twin)
        points.push_back(busy_point({42, minute * 4 + twin}, minute * 120 + second));
    const Status taken = store.append(points, {}, {});
    REQUIRE_MESSAGE(taken.has_value(), (taken ? "" : taken.error().text));
  }
  CHECK(store.records(0, 100000)->size() < 24 * 30 * 4 / 2);
  CHECK(store.records(0, 100000)->size() > 100);
}

TEST_CASE("a cap that is lowered shrinks the file at the next open") {
  const ScratchDirectory scratch;
  {
    Store store = open_store(scratch.path("h.db"), Bytes{4 * kMiB});
    for (std::uint64_t second = 0; second < kSeconds; ++second)
      REQUIRE(store.append(tick(second), {}, {}).has_value());
    CHECK(store.size_bytes() > kMiB);
  }
  Store store = open_store(scratch.path("h.db"), Bytes{kMiB});
  CHECK(store.size_bytes() <= kMiB);
  CHECK(store.history(kOne, at_second(kSeconds - 60), at_second(kSeconds), 100)->size() == 60);
  REQUIRE(store.append(tick(kSeconds), {}, {}).has_value());
}

TEST_CASE("a cap is taken at its lower bound and refused one byte below") {
  const ScratchDirectory scratch;
  CHECK(Store::open({scratch.path("a.db"), "b", kMinimumCap}).has_value());
  const auto refused = Store::open({scratch.path("b.db"), "b", Bytes{kMinimumCap.value - 1}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::invalid);
}

TEST_CASE("what cannot fit below the cap is refused with io and the rest goes on") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"), kMinimumCap);
  const nlohmann::json learned = std::string(kMaxLearnedBytes - 2, 'a');
  REQUIRE(store.save_learned("one", learned).has_value());
  const Status full = store.save_learned("two", learned);
  REQUIRE_FALSE(full.has_value());
  CHECK(full.error().kind == ErrorKind::io);
  CHECK(full.error().text.find("SQLITE_FULL") != std::string::npos);
  CHECK(full.error().text.find("store.cap (524288 bytes)") != std::string::npos);
  CHECK_FALSE(store.degraded().has_value());
  CHECK(store.append({busy_point(kOne, 1)}, {decision_of(kOne, 1, at_second(1))}, {}).has_value());
  CHECK(store.flush().has_value());
  CHECK(store.load_learned("one") == learned);
}

TEST_CASE("if containers and learned statistics reach the cap, samples are dropped and counted") {
  const ScratchDirectory scratch;
  Store store = Store::open({.path = scratch.path("h.db"),
                             .boot_id = "boot-1",
                             .cap = kMinimumCap,
                             .min_free = Bytes{4096}})
                    .value();
  const std::size_t bytes[] = {kMaxLearnedBytes - 2, 16 * 1024, 1024, 128};
  int image = 0;
  for (const std::size_t size : bytes)
    while (store.save_learned(std::to_string(++image), nlohmann::json(std::string(size, 'a'))))
      REQUIRE(image < 1000);
  std::uint64_t second = 0;
  while (!store.degraded() && second < 200) REQUIRE(store.append(tick(++second), {}, {}));
  REQUIRE(store.degraded().has_value());
  CHECK(store.degraded()->starts_with("samples are dropped: "));
  CHECK(store.degraded()->find("store.cap (524288 bytes)") != std::string::npos);
  CHECK(store.dropped_samples() > 0);
  std::uint64_t kept = 0;
  for (std::uint64_t inode = 1; inode <= 10; ++inode)
    kept += store.history({42, inode}, at_second(0), at_second(1e6), 1 << 20)->size();
  CHECK(kept + store.dropped_samples() == 10 * second);
}
