#include "tests/workloads/response_cache.h"

#include <doctest/doctest.h>

using namespace cgphase::workloads;

namespace {

void fill(ResponseCache& cache, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t key = first; key < first + count; ++key)
    cache.insert(key)[0] = static_cast<float>(key);
}

}  // namespace

TEST_CASE("response cache: a stored response is found, another is not") {
  ResponseCache cache(4, 2);
  fill(cache, 7, 1);
  REQUIRE(cache.find(7).size() == 4);
  CHECK(cache.find(7)[0] == 7);
  CHECK(cache.find(8).empty());
}

TEST_CASE("response cache: it keeps its segments up to the last entry") {
  ResponseCache cache(4, 2);
  fill(cache, 0, 2 * ResponseCache::kSegmentEntries);
  CHECK(cache.segment_count() == 2);
  CHECK(cache.entry_count() == 2 * ResponseCache::kSegmentEntries);
  CHECK_FALSE(cache.find(0).empty());
}

TEST_CASE("response cache: one entry more drops the oldest segment") {
  ResponseCache cache(4, 2);
  fill(cache, 0, 2 * ResponseCache::kSegmentEntries + 1);
  CHECK(cache.segment_count() == 2);
  CHECK(cache.find(0).empty());
  CHECK(cache.find(ResponseCache::kSegmentEntries - 1).empty());
  CHECK_FALSE(cache.find(ResponseCache::kSegmentEntries).empty());
}

TEST_CASE("response cache: trimming keeps the newest") {
  ResponseCache cache(4, 4);
  fill(cache, 0, 3 * ResponseCache::kSegmentEntries);
  cache.trim(1);
  CHECK(cache.segment_count() == 1);
  CHECK(cache.find(0).empty());
  CHECK_FALSE(cache.find(3 * ResponseCache::kSegmentEntries - 1).empty());
  cache.trim(0);
  CHECK(cache.entry_count() == 0);
}
