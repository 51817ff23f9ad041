#include "collectors/ebpf/hot_cgroups.h"

#include <doctest/doctest.h>

#include <array>

using namespace cgphase;

TEST_CASE("places are a power of two, at most 256, for half the room of the map") {
  CHECK(hot_places(1) == 1);
  CHECK(hot_places(64) == 32);
  CHECK(hot_places(258) == 256);
  CHECK(hot_places(100'000) == 256);
}

TEST_CASE("a place belongs to the first that asks, until it is taken back") {
  std::array<__u64, 4> owners{};
  HotCgroups hot(-1, 8, owners);  // without a map: who owns what needs none
  hot.give(5);
  hot.give(9);
  hot.give(6);
  CHECK(owners == std::array<__u64, 4>{0, 5, 6, 0});
  CHECK(hot.has(5));
  CHECK_FALSE(hot.has(9));
  hot.take_back(9);
  CHECK(hot.has(5));
  hot.take_back(5);
  hot.give(9);
  CHECK(hot.has(9));
}

TEST_CASE("what has no cgroup has no place, and where there are none nobody has one") {
  std::array<__u64, 4> owners{};
  HotCgroups hot(-1, 8, owners), none;
  hot.give(0);
  none.give(5);
  CHECK_FALSE(hot.has(0));
  CHECK_FALSE(none.has(5));
  CHECK(none.read(5).empty());
}
