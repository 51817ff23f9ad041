#include "storage/thinning.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// One that uses `cores` since the second before `second` and holds `bytes`.
HistoryPoint point_at(std::uint64_t second, std::uint64_t usage_usec, std::uint64_t bytes) {
  HistoryPoint point;
  point.time = at_second(static_cast<double>(second));
  point.sample.id = kOne;
  point.sample.cpu.usage_usec = usage_usec;
  point.sample.memory_current = Bytes{bytes};
  point.sample.memory.anon_bytes = bytes / 2;
  return point;
}

std::vector<HistoryPoint> thinned(std::chrono::seconds step,
                                  const std::vector<HistoryPoint>& points) {
  Thinner thinner(step);
  std::vector<HistoryPoint> out;
  for (const HistoryPoint& point : points)
    if (auto whole = thinner.add(point)) out.push_back(*whole);
  if (auto last = thinner.finish()) out.push_back(*last);
  return out;
}

constexpr std::uint64_t kMinute = 40;  // at_second() of it is a whole minute since 1970

}  // namespace

TEST_CASE("of a span the last counter and the highest gauge stay") {
  const auto out = thinned(std::chrono::seconds(15), {point_at(kMinute, 100, 10),
                                                      point_at(kMinute + 1, 200, 90),
                                                      point_at(kMinute + 14, 300, 20),
                                                      point_at(kMinute + 15, 400, 7)});
  REQUIRE(out.size() == 2);
  CHECK(out[0].time == at_second(kMinute + 14));
  CHECK(out[0].sample.id == kOne);
  CHECK(out[0].sample.cpu.usage_usec == 300);
  CHECK(out[0].sample.memory_current == Bytes{90});
  CHECK(out[0].sample.memory.anon_bytes == 45);
  CHECK(out[1].sample.memory_current == Bytes{7});
}

TEST_CASE("the highest usage between two readings stays through both steps") {
  std::vector<HistoryPoint> points;
  std::uint64_t usage = 0;
  for (std::uint64_t second = 0; second < 60; ++second)
    points.push_back(point_at(kMinute + second, usage += second == 30 ? 3'000'000 : 250'000, 1));
  const auto medium = thinned(std::chrono::seconds(15), points);
  REQUIRE(medium.size() == 4);
  CHECK(medium[0].peak_cpu_cores == doctest::Approx(0.25));
  CHECK(medium[2].peak_cpu_cores == doctest::Approx(3.0));  // the first of its span
  const auto coarse = thinned(std::chrono::seconds(60), medium);
  REQUIRE(coarse.size() == 1);
  CHECK(coarse[0].peak_cpu_cores == doctest::Approx(3.0));
  CHECK(coarse[0].sample.cpu.usage_usec == usage);
}

TEST_CASE("a wall clock that is set back makes no peak of CPU") {
  std::vector<HistoryPoint> points;
  for (std::uint64_t second = 0; second < 10; ++second) {
    points.push_back(point_at(kMinute + second, second * 990'000, 1));
    points.back().clock_start_ms = second < 5 ? 1'000'000 : 999'400;
    if (second >= 5) points.back().time -= std::chrono::milliseconds(600);
  }
  const auto out = thinned(std::chrono::seconds(60), points);
  REQUIRE(out.size() == 1);
  CHECK(out[0].peak_cpu_cores == doctest::Approx(0.99));
  CHECK(out[0].clock_start_ms == 999'400);
}

TEST_CASE("a counter that starts anew is no peak") {
  const auto out = thinned(std::chrono::seconds(60), {point_at(kMinute, 5'000'000, 1),
                                                      point_at(kMinute + 1, 100, 1),
                                                      point_at(kMinute + 2, 500'100, 1)});
  REQUIRE(out.size() == 1);
  CHECK(out[0].peak_cpu_cores == doctest::Approx(0.5));
}

TEST_CASE("limits and phase are the last ones, also if absent") {
  HistoryPoint first = point_at(kMinute, 1, 5), last = point_at(kMinute + 1, 2, 3);
  first.sample.pids_current = 9;
  first.sample.limits.memory_max = MemoryLimit{Bytes{4096}};
  first.sample.limits.cpu_weight = 100;
  first.sample.swap_max = MemoryLimit{Bytes{1}};
  last.sample.swap_max = MemoryLimit{};
  last.phase = {PhaseState::known, 3, 0.5, 0.25};
  const auto out = thinned(std::chrono::seconds(15), {first, last});
  REQUIRE(out.size() == 1);
  CHECK(out[0].sample.pids_current == 9);
  CHECK_FALSE(out[0].sample.limits.memory_max);
  CHECK_FALSE(out[0].sample.limits.cpu_weight);
  CHECK(out[0].sample.swap_max == MemoryLimit{});
  CHECK(same(out[0].phase, last.phase));
}

TEST_CASE("page cache that comes and goes within a span is no need of it") {
  std::vector<HistoryPoint> points;
  for (std::uint64_t second = 0; second < 60; ++second) {
    const std::uint64_t cache = second % 20 * kGiB;
    HistoryPoint& point = points.emplace_back(point_at(kMinute + second, second, 0));
    point.sample.memory_current = Bytes{5 * kMiB + cache};
    point.sample.memory.anon_bytes = 3 * kMiB;
    point.sample.memory.inactive_file_bytes = cache;
    point.sample.memory.slab_reclaimable_bytes = kMiB;
    point.sample.memory.kernel_bytes = kMiB;
  }
  const auto coarse =
      thinned(std::chrono::seconds(60), thinned(std::chrono::seconds(15), points));
  REQUIRE(coarse.size() == 1);
  CHECK(memory_need(coarse[0].sample) == Bytes{4 * kMiB});  // one of them in no line
}

TEST_CASE("the need of a thinned point is the highest of its span") {
  std::mt19937_64 random(11);
  std::vector<HistoryPoint> points;
  for (std::uint64_t second = 0; second < 1500; ++second) {
    const auto bytes = [&]() -> Counter {
      if (second >= 750 && random() % 8 == 0) return std::nullopt;
      return random() % kGiB;
    };
    HistoryPoint& point = points.emplace_back(point_at(kMinute + second, second, 0));
    point.sample.memory_current = Bytes{random() % (4 * kGiB)};
    MemoryStat& m = point.sample.memory;
    for (Counter* part : {&m.anon_bytes, &m.file_bytes, &m.shmem_bytes, &m.unevictable_bytes,
                          &m.kernel_bytes, &m.slab_reclaimable_bytes, &m.inactive_file_bytes,
                          &m.active_file_bytes})
      *part = bytes();
    if (const Counter swap = bytes()) point.sample.swap_current = Bytes{*swap};
  }
  const auto medium = thinned(std::chrono::seconds(15), points);
  const auto coarse = thinned(std::chrono::seconds(60), medium);
  for (const auto& [out, span] : {std::pair(&medium, 15U), std::pair(&coarse, 60U)}) {
    REQUIRE(out->size() == points.size() / span);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Sample &sample = points[i].sample, &thin = (*out)[i / span].sample;
      CHECK(memory_need(thin) >= memory_need(sample));
    }
  }
}
