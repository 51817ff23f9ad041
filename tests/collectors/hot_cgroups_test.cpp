#include "collectors/ebpf/hot_cgroups.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/fd.h"
#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/per_cpu_map.h"

using namespace cgphase;

namespace {

constexpr std::size_t kRecordBytes = 8;
constexpr std::uint32_t kPlaces = 4;

// Memory instead of a map, without the map of owners, which these tests do not need.
struct Places {
  Fd memory{::memfd_create("places", MFD_CLOEXEC)};
  HotCgroups hot = sized();

  HotCgroups sized() {
    const auto bytes = static_cast<off_t>(kRecordBytes * kPlaces * possible_processors());
    REQUIRE(::ftruncate(memory.get(), bytes) == 0);
    return HotCgroups(memory.get(), -1, kRecordBytes, kPlaces);
  }
  void count(std::uint32_t place, std::size_t processor, std::uint64_t number) const {
    const std::size_t at = (processor * kPlaces + place) * kRecordBytes;
    REQUIRE(::pwrite(memory.get(), &number, sizeof number, static_cast<off_t>(at)) ==
            sizeof number);
  }
  std::uint64_t counted(std::uint32_t place, std::size_t processor) const {
    std::uint64_t number = 0;
    std::copy_n(hot.record(place, processor), sizeof number, reinterpret_cast<std::byte*>(&number));
    return number;
  }
};

// Cgroups from 1 on that share the same two places.
std::vector<std::uint64_t> rivals(std::size_t count) {
  const auto pair_of = [](std::uint64_t cgroup) {
    return (cgroup * HOT_SPREAD >> hot_shift(kPlaces)) / 2;
  };
  std::vector<std::uint64_t> found{1};
  for (std::uint64_t cgroup = 2; found.size() < count; ++cgroup)
    if (pair_of(cgroup) == pair_of(1)) found.push_back(cgroup);
  return found;
}

}  // namespace

TEST_CASE("there is a place for each cgroup of the hash, and the number is a power of two") {
  CHECK(hot_places(1, 8) == 2);
  CHECK(hot_places(64, 8) == 64);
  CHECK(hot_places(65, 8) == 128);
}

TEST_CASE("with many processors or much room, the number of places is limited") {
  CHECK(hot_places(1'000'000, 1) == HOT_CGROUPS);
  CHECK(hot_places(1'000'000, 1 << 20) == 256);
}

TEST_CASE("a place number has the bits that the shift leaves") {
  CHECK((~std::uint64_t{0} >> hot_shift(2)) == 1);
  CHECK((~std::uint64_t{0} >> hot_shift(1024)) == 1023);
}

TEST_CASE("two cgroups with the same places get one each, and a third gets none") {
  Places places;
  const auto cgroups = rivals(3);
  const auto first = places.hot.assign(cgroups[0]), second = places.hot.assign(cgroups[1]);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*second == (*first ^ 1));
  CHECK_FALSE(places.hot.assign(cgroups[2]));
  CHECK(places.hot.assign(cgroups[0]) == first);
  CHECK(places.hot.place_of(cgroups[1]) == second);
  CHECK_FALSE(places.hot.place_of(cgroups[2]));
}

TEST_CASE("a released place is empty and can be assigned again") {
  Places places;
  const auto cgroups = rivals(3);
  const auto place = places.hot.assign(cgroups[0]), other = places.hot.assign(cgroups[1]);
  REQUIRE(place);
  REQUIRE(other);
  const std::size_t last = possible_processors() - 1;
  places.count(*place, last, 7);
  places.count(*other, last, 9);
  CHECK(places.counted(*place, last) == 7);
  places.hot.release(cgroups[0]);
  places.hot.release(cgroups[2]);  // it never had a place
  CHECK(places.hot.assign(cgroups[2]) == place);
  CHECK(places.counted(*place, last) == 0);
  CHECK(places.counted(*other, last) == 9);
}

TEST_CASE("inode 0 has no place, and without a map there are no places") {
  Places places;
  HotCgroups none, unmapped(-1, -1, kRecordBytes, kPlaces);
  CHECK_FALSE(places.hot.assign(0));
  CHECK_FALSE(none.assign(5));
  CHECK_FALSE(unmapped.assign(5));
}
