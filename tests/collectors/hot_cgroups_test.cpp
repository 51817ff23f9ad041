#include "collectors/ebpf/hot_cgroups.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("places are a power of two, at most 256, for half the room of the map") {
  CHECK(hot_places(1) == 1);
  CHECK(hot_places(64) == 32);
  CHECK(hot_places(258) == 256);
  CHECK(hot_places(100'000) == 256);
}

TEST_CASE("a place belongs to the first that asks, until it is taken back") {
  HotCgroups hot(-1, -1, 8, 4);  // without maps: who owns what needs none
  hot.give(5);
  hot.give(9);
  hot.give(6);
  CHECK(hot.has(5));
  CHECK(hot.has(6));
  CHECK_FALSE(hot.has(9));
  hot.take_back(9);
  CHECK(hot.has(5));
}

TEST_CASE("a place that cannot be read tells nothing, and one that cannot be emptied is nobody's") {
  HotCgroups hot(-1, -1, 8, 4);
  hot.give(5);
  CHECK_FALSE(hot.read(5));
  hot.take_back(5);
  CHECK_FALSE(hot.has(5));
  hot.give(9);
  CHECK_FALSE(hot.has(9));
}

TEST_CASE("what has no cgroup has no place, and where there are none nobody has one") {
  HotCgroups hot(-1, -1, 8, 4), none;
  hot.give(0);
  none.give(5);
  CHECK_FALSE(hot.has(0));
  CHECK_FALSE(none.has(5));
  CHECK(none.read(5).value().empty());
}
