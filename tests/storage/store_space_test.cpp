// A disk that fills up: what is written then, and what waits in memory. The disk is a tmpfs in a
// mount namespace of a child's own, that ends with it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "storage/sample_history.h"
#include "storage/store.h"
#include "storage/store_thread.h"
#include "tests/storage/points.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr Bytes kFloor{4 * kMiB}, kSmallCap{16 * kMiB};
constexpr int kNoMount = 77;

// What a child has of the disk, and what it does with it.
struct SmallDisk {
  std::string folder, ballast = folder + "/ballast", database = folder + "/h.db",
                      reserve = database + ".reserve";

  std::uint64_t free_bytes() const {
    struct statvfs disk {};
    return ::statvfs(folder.c_str(), &disk) == 0 ? disk.f_bavail * disk.f_frsize : 0;
  }
  // Leaves at most so much, to a page.
  void fill(std::uint64_t left) const {
    const int fd = ::open(ballast.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const std::string page(kPageBytes, 'x');
    while (free_bytes() > left && ::write(fd, page.data(), page.size()) > 0) {
    }
    ::close(fd);
  }
  void release() const { std::filesystem::remove(ballast); }
  bool reserved() const { return std::filesystem::exists(reserve); }
  Store open(Bytes floor = kFloor) const { return open(database, floor); }
  // One that does not open ends the child.
  static Store open(const std::string& path, Bytes floor) {
    Store::Options options;
    options.path = path;
    options.boot_id = "boot-1";
    options.cap = kSmallCap;
    options.min_free = floor;
    Result<Store> store = Store::open(options);
    if (!store) std::fprintf(stderr, "%s\n", store.error().text.c_str());
    if (!store) ::_exit(99);
    return *std::move(store);
  }
};

// `body` in a child with a tmpfs of 16 MiB tells the number of the first thing that is not as it
// must be, 0 if all is well.
void check_on_small_disk(const std::function<int(const SmallDisk&)>& body) {
  const ScratchDirectory scratch;
  const std::string folder = scratch.path("disk");
  std::filesystem::create_directory(folder);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=16m") != 0)
      ::_exit(kNoMount);
    ::_exit(body(SmallDisk{.folder = folder}));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoMount) {
    MESSAGE("not run: mounting a tmpfs is not permitted here");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

std::size_t points_of(Store& store) {
  const auto points = store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
  return points ? points->size() : 0;
}

std::size_t decisions_of(Store& store) {
  const auto decisions = store.decisions(kOne, WallTime::max(), 1 << 20);
  return decisions ? decisions->size() : 0;
}

// Points of seconds from <= second < to.
bool add_points(Store& store, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t second = from; second < to; ++second)
    if (!store.append({busy_point(kOne, second)}, {}, {})) return false;
  return true;
}

// Ticks of the same seconds in which no container lives.
bool add_ticks(Store& store, int from, int to) {
  for (int second = from; second < to; ++second)
    if (!store.append({}, {}, {}, at_second(second))) return false;
  return true;
}

// The points of all seconds below `count` are there, each once, and no more.
bool whole(Store& store, std::uint64_t count) {
  const auto points = store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
  if (!points || points->size() != count) return false;
  for (std::uint64_t second = 0; second < count; ++second)
    if (!same((*points)[second], busy_point(kOne, second))) return false;
  return store.damaged_count() == 0;
}

bool add_decision(Store& store, std::uint64_t id) {
  return store.append({}, {decision_of(kOne, id, at_second(static_cast<double>(id)))}, {})
      .has_value();
}

}  // namespace

TEST_CASE("below the floor samples wait in memory, decisions are written, all when it is over") {
  check_on_small_disk([](const SmallDisk& disk) {
    Store store = disk.open();
    if (!disk.reserved() || store.held_back()) return 1;
    if (!add_points(store, 0, 30) || store.held_back()) return 2;
    disk.fill(kFloor.value / 2);
    if (!add_points(store, 30, 200)) return 3;
    if (!store.held_back() || !has(*store.held_back(), "less than 4.0 MiB"))
      return 4;
    if (!add_decision(store, 1) || decisions_of(store) != 1) return 5;
    if (points_of(store) != 200 || !disk.reserved()) return 6;
    // What a process that is killed now leaves behind.
    const std::string copy = disk.folder + "/copy.db";
    std::filesystem::copy_file(disk.database, copy);
    std::filesystem::copy_file(disk.database + "-wal", copy + "-wal");
    {
      Store left = SmallDisk::open(copy, Bytes{0});
      if (decisions_of(left) != 1 || points_of(left) >= 60) return 7;
    }
    disk.release();
    if (!add_points(store, 200, 230) || store.held_back()) return 8;
    return store.flush() && points_of(store) == 230 ? 0 : 9;
  });
}

TEST_CASE("on a full disk decisions are written out of the reserve, which is taken again") {
  check_on_small_disk([](const SmallDisk& disk) {
    Store store = disk.open();
    if (!add_points(store, 0, 30)) return 1;
    disk.fill(0);
    std::uint64_t id = 0;
    while (disk.reserved() && id < 5000)
      if (!add_decision(store, ++id)) return 2;
    if (disk.reserved() || !store.held_back() || !has(*store.held_back(), "was full")) return 3;
    for (const std::uint64_t more = id + 5; id < more;)
      if (!add_decision(store, ++id)) return 4;
    if (!add_points(store, 30, 90) || points_of(store) != 90) return 5;
    disk.release();
    if (!add_points(store, 90, 120) || store.held_back() || !disk.reserved()) return 6;
    return decisions_of(store) == id && points_of(store) == 120 ? 0 : 7;
  });
}

TEST_CASE("on a full disk a history is opened out of the reserve") {
  check_on_small_disk([](const SmallDisk& disk) {
    {
      Store store = disk.open();
      if (!disk.reserved() || !add_points(store, 0, 30)) return 1;
    }
    disk.fill(0);
    {
      Store store = disk.open();
      if (disk.reserved() || !store.held_back() || !has(*store.held_back(), "was full")) return 2;
      if (!whole(store, 30) || !add_decision(store, 1) || decisions_of(store) != 1) return 3;
      if (!add_points(store, 30, 90) || !whole(store, 90)) return 4;
      disk.release();
      if (!add_points(store, 90, 120) || store.held_back() || !whole(store, 120)) return 5;
    }
    Store store = disk.open();
    return whole(store, 120) && decisions_of(store) == 1 ? 0 : 6;
  });
}

TEST_CASE("on a full disk without a reserve a history is opened, and waits for room") {
  check_on_small_disk([](const SmallDisk& disk) {
    {
      Store store = disk.open();
      if (!add_points(store, 0, 30)) return 1;
    }
    std::filesystem::remove(disk.reserve);
    disk.fill(0);
    {
      Store store = disk.open();
      if (!store.held_back() || !has(*store.held_back(), "was full")) return 2;
      if (!whole(store, 30) || add_decision(store, 1)) return 3;
    }
    {
      Store store = disk.open();
      if (!add_points(store, 30, 60) || !whole(store, 60)) return 4;
      disk.release();
      if (!add_points(store, 60, 90) || store.held_back() || !whole(store, 90)) return 5;
      if (!add_decision(store, 1)) return 6;
    }
    Store store = disk.open();
    return whole(store, 90) && decisions_of(store) == 1 ? 0 : 7;
  });
}

TEST_CASE("what waited in memory is written when there is room, though no container lives") {
  check_on_small_disk([](const SmallDisk& disk) {
    Store store = disk.open();
    if (!add_points(store, 0, 30)) return 1;
    disk.fill(kFloor.value / 2);
    if (!add_points(store, 30, 60) || !add_ticks(store, 60, 90) || !store.held_back()) return 2;
    disk.release();
    if (!add_ticks(store, 90, 120) || store.held_back()) return 3;
    const std::string copy = disk.folder + "/copy.db";
    std::filesystem::copy_file(disk.database, copy);
    std::filesystem::copy_file(disk.database + "-wal", copy + "-wal");
    Store left = SmallDisk::open(copy, Bytes{0});
    return whole(left, 60) ? 0 : 4;
  });
}

TEST_CASE("what waits in memory is bounded, and the oldest go") {
  check_on_small_disk([](const SmallDisk& disk) {
    Store store = disk.open(Bytes{kGiB});
    if (disk.reserved()) return 1;
    constexpr std::uint64_t kMost = kMaxSealedBlocks * kBlockPoints;
    const std::uint64_t last = kMost + kMost / 2;
    std::vector<HistoryPoint> points;
    for (std::uint64_t second = 0; second < last; second += 60) {
      points.clear();
      for (std::uint64_t k = 0; k < 60; ++k) points.push_back(busy_point(kOne, second + k));
      if (!store.append(points, {}, {})) return 2;
    }
    const auto kept = store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
    if (!kept || kept->size() > kMost + 2 * kBlockPoints || kept->size() < kMost / 2) return 3;
    if (store.dropped_samples() + kept->size() != last) return 5;
    return same(kept->back(), busy_point(kOne, last - 1)) ? 0 : 4;
  });
}

TEST_CASE("containers that ended leave memory below the floor, too") {
  check_on_small_disk([](const SmallDisk& disk) {
    Store store = disk.open(Bytes{kGiB});
    const std::uint64_t many = 2 * kMaxSealedBlocks;
    for (std::uint64_t one = 0; one < many; ++one)
      if (!store.append({busy_point({42, one}, 11 * one)}, {}, {})) return 2;
    std::uint64_t kept = 0;
    for (std::uint64_t one = 0; one < many; ++one)
      kept += store.history({42, one}, WallTime::min(), WallTime::max(), 9)->size();
    if (store.damaged_count() != 0) return 4;
    return kept <= kMaxSealedBlocks + 2 && kept >= kMaxSealedBlocks / 2 ? 0 : 3;
  });
}

TEST_CASE("the thread that owns the store says why samples wait") {
  check_on_small_disk([](const SmallDisk& disk) {
    Store store = disk.open(Bytes{kGiB});
    StoreThread thread(std::move(store));
    thread.enqueue({.containers = {}, .points = {busy_point(kOne, 1)}, .decisions = {},
                    .outcomes = {}});
    if (!thread.flush_and_stop()) return 2;
    const std::optional<std::string> why = thread.degraded();
    return why && why->starts_with("samples are kept in memory only, decisions are still") ? 0 : 3;
  });
}
