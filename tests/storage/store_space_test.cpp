// A disk that fills up: samples are dropped and counted, decisions are written or fail. The disk is
// a tmpfs in the mount namespace of a child.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>

#include "storage/sample_history.h"
#include "storage/store.h"
#include "storage/store_thread.h"
#include "tests/in_child.h"
#include "tests/storage/points.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr Bytes kFloor{4 * kMiB}, kSmallCap{16 * kMiB};
constexpr int kNoMount = 77;

// The disk of a child.
struct SmallDisk {
  std::string folder, ballast = folder + "/ballast", database = folder + "/h.db";

  std::uint64_t free_bytes() const {
    struct statvfs disk {};
    return ::statvfs(folder.c_str(), &disk) == 0 ? disk.f_bavail * disk.f_frsize : 0;
  }
  // Leaves at most `left` bytes, rounded up to a page.
  void fill(std::uint64_t left) const {
    const int fd = ::open(ballast.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const std::string page(kPageBytes, 'x');
    while (free_bytes() > left && ::write(fd, page.data(), page.size()) > 0) {
    }
    ::close(fd);
  }
  void release() const { std::filesystem::remove(ballast); }
  Store open(Bytes floor = kFloor) const { return open(database, floor); }
  // An error ends the child.
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

// `body` in a child with a tmpfs of 16 MiB returns the number of the first thing that is not as it
// must be, 0 if all is well.
void check_on_small_disk(const std::function<int(const SmallDisk&)>& body) {
  const ScratchDirectory scratch;
  const std::string folder = scratch.path("disk");
  std::filesystem::create_directory(folder);
  const int result = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=16m") != 0)
      return kNoMount;
    return body(SmallDisk{.folder = folder});
  });
  if (result == kNoMount) {
    MESSAGE("not run: mounting a tmpfs is not permitted here");
    return;
  }
  CHECK(result == 0);
}

std::size_t points_of(Store& store) {
  const auto points = store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
  return points ? points->size() : 0;
}

std::size_t decisions_of(Store& store) {
  const auto decisions = read_decisions(store, kOne, WallTime::max(), 1 << 20);
  return decisions ? decisions->size() : 0;
}

// Points of seconds from <= second < to.
bool add_points(Store& store, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t second = from; second < to; ++second)
    if (!store.append({busy_point(kOne, second)}, {}, {})) return false;
  return true;
}

bool add_decision(Store& store, std::uint64_t id) {
  return store.append({}, {decision_of(kOne, id, at_second(static_cast<double>(id)))}, {})
      .has_value();
}

}  // namespace

TEST_CASE("with little free space samples are dropped and decisions are written") {
  check_on_small_disk([](const SmallDisk& disk) {
    Store store = disk.open();
    if (!add_points(store, 0, 30) || store.degraded()) return 1;
    disk.fill(kFloor.value / 2);
    if (!add_points(store, 30, 200)) return 2;
    if (!store.degraded() || !has(*store.degraded(), "less than 4.0 MiB")) return 3;
    if (!store.degraded()->starts_with("samples are dropped: ")) return 4;
    if (!add_decision(store, 1) || decisions_of(store) != 1) return 5;
    const std::uint64_t dropped = store.dropped_samples();
    if (dropped < 150 || points_of(store) + dropped != 200) return 6;
    disk.release();
    if (!add_points(store, 200, 230) || store.degraded()) return 7;
    if (!store.flush() || store.damaged_count() != 0) return 8;
    return points_of(store) + store.dropped_samples() == 230 ? 0 : 9;
  });
}

TEST_CASE("on a full disk a history opens and reads, and decisions fail until space returns") {
  check_on_small_disk([](const SmallDisk& disk) {
    {
      Store store = disk.open();
      if (!add_points(store, 0, 30)) return 1;
    }
    disk.fill(0);
    {
      Store store = disk.open();
      if (points_of(store) != 30) return 2;
      std::uint64_t id = 0;
      while (id < 5000 && add_decision(store, id + 1)) ++id;
      if (id == 5000 || decisions_of(store) != id) return 3;
      if (!add_points(store, 30, 60) || !store.degraded()) return 4;
      disk.release();
      if (!add_decision(store, id + 1) || !add_points(store, 60, 90) || store.degraded()) return 5;
      if (decisions_of(store) != id + 1) return 6;
      if (!store.flush() || points_of(store) + store.dropped_samples() != 90) return 7;
    }
    Store store = disk.open();
    return points_of(store) >= 60 && store.damaged_count() == 0 ? 0 : 8;
  });
}

TEST_CASE("memory is bounded: many samples at once are written before their time") {
  Store store = open_store(":memory:");
  const std::vector<HistoryPoint> points(kMaxUnflushedPoints, busy_point(kOne, 1));
  REQUIRE(store.append(points, {}, {}));
  const std::uint64_t before = store.size_bytes();
  REQUIRE(store.append({busy_point(kOne, 1)}, {}, {}));
  CHECK(store.size_bytes() > before);
}

TEST_CASE("the storage thread reports why samples are dropped, and counts them") {
  check_on_small_disk([](const SmallDisk& disk) {
    StoreThread thread(disk.open(Bytes{kGiB}));
    for (const std::uint64_t second : {1, 30}) {
      thread.enqueue({.containers = {}, .points = {busy_point(kOne, second)}, .decisions = {},
                      .outcomes = {}, .time = at_second(static_cast<double>(second))});
      std::promise<void> done;  // otherwise both batches may be written as one
      if (!thread.query([&done](Store&) { done.set_value(); })) return 3;
      done.get_future().wait();
    }
    if (!thread.flush_and_stop()) return 1;
    const std::optional<std::string> why = thread.degraded();
    return why && why->starts_with("samples are dropped: ") ? 0 : 2;
  });
}
