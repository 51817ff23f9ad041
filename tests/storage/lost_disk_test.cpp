// A file system that fails: a power cut, a disk that stops answering, an aborted file system. It is
// an ext4 in a file, in the mount namespace of a child. FS_IOC_SHUTDOWN without its log loses
// unwritten data like a power cut.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <future>
#include <random>

#include "base/fd.h"
#include "storage/store.h"
#include "storage/store_thread.h"
#include "tests/in_child.h"
#include "tests/rounds.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr int kNotHere = 77;
// Samples of one flush interval and one tick.
constexpr auto kMostUnflushed = static_cast<std::uint64_t>(Store::kFlushInterval.count()) + 1;
constexpr off_t kDiskBytes = 64 << 20;
constexpr int kAttempts = 20;  // a free loop device may be taken by somebody else meanwhile
// Of include/uapi/linux/fs.h, 6.14 and newer; ext4 has had it since 4.13.
constexpr unsigned long kShutdown = _IOR('X', 125, std::uint32_t);
constexpr std::uint32_t kWithoutLog = 2;

bool run_program(std::vector<const char*> arguments) {
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, arguments[0], nullptr, nullptr,
                     const_cast<char* const*>(arguments.data()), environ) != 0)
    return false;
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class LoseableDisk {
 public:
  explicit LoseableDisk(const std::string& folder)
      : image_(folder + "/image"), mount_(folder + "/disk"), database(mount_ + "/h.db") {}

  bool make() const {
    std::filesystem::create_directory(mount_);
    const Fd fd(::open(image_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return fd.valid() && ::ftruncate(fd.get(), kDiskBytes) == 0 &&
           run_program({"mkfs.ext4", "-q", image_.c_str()}) && mount();
  }
  bool mount() const {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
      const int number = control.valid() ? ::ioctl(control.get(), LOOP_CTL_GET_FREE) : -1;
      if (number < 0) return false;
      const std::string device = "/dev/loop" + std::to_string(number);
      const Fd loop(::open(device.c_str(), O_RDWR | O_CLOEXEC));
      const Fd image(::open(image_.c_str(), O_RDWR | O_CLOEXEC));
      loop_config config{};
      config.fd = static_cast<std::uint32_t>(image.get());
      config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
      if (!loop.valid() || ::ioctl(loop.get(), LOOP_CONFIGURE, &config) != 0) continue;
      return ::mount(device.c_str(), mount_.c_str(), "ext4", 0, nullptr) == 0;
    }
    return false;
  }
  bool cut_power() const {
    const Fd fd(::open(mount_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::uint32_t how = kWithoutLog;
    return fd.valid() && ::ioctl(fd.get(), kShutdown, &how) == 0;
  }
  // As the kernel does when it finds the file system damaged: read-only from now on.
  bool abort() const {
    return ::mount(nullptr, mount_.c_str(), nullptr, MS_REMOUNT, "abort") == 0;
  }
  // What was written before is on the disk then.
  bool sync_and_abort() const {
    const Fd fd(::open(mount_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd.valid() && ::syncfs(fd.get()) == 0 && abort();
  }
  // Read-only by its path; files that are open take writes still.
  bool cover_read_only() const {
    return ::mount(mount_.c_str(), mount_.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
           ::mount(nullptr, mount_.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) ==
               0;
  }
  // Refused while anybody has a file of it open.
  bool unmount() const { return ::umount2(mount_.c_str(), 0) == 0; }
  bool mount_again() const { return unmount() && mount(); }

 private:
  std::string image_, mount_;

 public:
  const std::string database;
};

// `body` runs in a child with a disk that may be lost. It returns 0, or the number of the first
// check that failed.
void check_on_lost_disk(const std::function<int(const LoseableDisk&)>& body) {
  const ScratchDirectory scratch;
  const std::string folder = scratch.path("lost");
  std::filesystem::create_directory(folder);
  const int result = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return kNotHere;
    const LoseableDisk disk(folder);
    return disk.make() ? body(disk) : kNotHere;
  });
  if (result == kNotHere) {
    MESSAGE("not run: no ext4 can be made in a file and mounted here");
    return;
  }
  CHECK(result == 0);
}

Result<Store> open_on(const LoseableDisk& disk) {
  return Store::open({.path = disk.database, .boot_id = "boot-1"});
}

// A decision and a sample for each second, from the first that is not there yet; a byte down the
// pipe after each.
[[noreturn]] void write_forever(const LoseableDisk& disk, int pipe_fd) {
  Result<Store> store = open_on(disk);
  if (!store) ::_exit(1);
  for (std::uint64_t id = *store->last_decision_id() + 1;; ++id) {
    const auto second = static_cast<double>(id);
    const auto taken = store->append({busy_point(kOne, id)},
                                     {decision_of(kOne, id, at_second(second))}, {});
    if (!taken || ::write(pipe_fd, "", 1) != 1) ::_exit(2);
  }
}

// Cuts the power after so many decisions, and ends who wrote them. False where it could not.
bool lose_power_while_writing(const LoseableDisk& disk, int decisions) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return false;
  const pid_t writer = ::fork();
  if (writer == 0) write_forever(disk, ends[1]);
  ::close(ends[1]);
  bool lost = writer > 0;
  for (char byte; lost && decisions > 0; --decisions) lost = ::read(ends[0], &byte, 1) == 1;
  lost = lost && disk.cut_power();
  ::close(ends[0]);
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  return lost && disk.mount_again();
}

// 0 when the file is whole, with each decision from the first to its last and with no fewer than
// `at_least`, which it then becomes.
int check_after_loss(const LoseableDisk& disk, std::uint64_t& at_least) {
  Result<Store> store = open_on(disk);
  if (!store || store->quarantined() || store->damaged_count() != 0) return 10;
  const auto last = store->last_decision_id();
  if (!last || *last < at_least) return 11;
  const auto decisions = read_decisions(*store, kOne, WallTime::max(), 1 << 20);
  if (!decisions || decisions->size() != *last) return 12;
  const auto points = store->history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
  if (!points) return 13;
  for (const HistoryPoint& point : *points) {
    const auto second = std::chrono::floor<std::chrono::seconds>(point.time - at_second(0)).count();
    if (!same(point, busy_point(kOne, static_cast<std::uint64_t>(second)))) return 14;
  }
  at_least = *last;
  return 0;
}

// Everything that was handed over before has been tried when this returns.
bool settle(StoreThread& thread) {
  std::promise<void> tried;
  const bool asked = thread.query([&tried](Store&) { tried.set_value(); });
  if (asked) tried.get_future().wait();
  return asked;
}

void enqueue(StoreThread& thread, std::uint64_t id) {
  thread.enqueue({.containers = {}, .points = {busy_point(kOne, id)},
                  .decisions = {decision_of(kOne, id, at_second(static_cast<double>(id)))},
                  .outcomes = {}});
}

// One after the other, so that each is an attempt of its own.
bool enqueue_each(StoreThread& thread, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t id = from; id < to; ++id) {
    enqueue(thread, id);
    if (!settle(thread)) return false;
  }
  return true;
}

// The file system fails through `fail` after 130 seconds and is mounted again later. 0 if the same
// store continues; `dropped` is the number of dropped samples.
int go_on_after_loss(const LoseableDisk& disk, bool (LoseableDisk::*fail)() const,
                     std::uint64_t& dropped) {
  Result<Store> store = open_on(disk);
  if (!store) return 1;
  StoreThread thread(*std::move(store));
  if (!enqueue_each(thread, 1, 130) || thread.degraded()) return 2;
  if (!(disk.*fail)() || !enqueue_each(thread, 130, 200) || !thread.degraded()) return 3;
  if (!disk.unmount()) return 4;  // the store is detached
  if (!enqueue_each(thread, 200, 210) || !thread.degraded()) return 5;
  if (std::filesystem::exists(disk.database)) return 6;  // no new one in its place
  if (!disk.mount() || !enqueue_each(thread, 210, 230) || thread.degraded()) return 7;
  const auto counts = thread.counts();
  dropped = counts.dropped_points;
  if (counts.queued != 0 || dropped > kMostUnflushed || counts.dropped_journal != 0) return 8;
  return thread.flush_and_stop() ? 0 : 9;
}

// The same, and all samples from second `whole_from` on are there, except dropped ones.
int survive_loss(const LoseableDisk& disk, bool (LoseableDisk::*fail)() const,
                 std::uint64_t whole_from) {
  std::uint64_t dropped = 0;
  if (const int wrong = go_on_after_loss(disk, fail, dropped); wrong != 0) return wrong;
  Result<Store> after = open_on(disk);
  if (!after || after->quarantined() || after->damaged_count() != 0) return 20;
  const auto decisions = read_decisions(*after, kOne, WallTime::max(), 1 << 20);
  const auto points = after->history(kOne, at_second(static_cast<double>(whole_from)),
                                     WallTime::max(), 1 << 20);
  if (!decisions || decisions->size() < 230 - 130) return 21;
  if (!points || points->size() > 230 - whole_from) return 22;
  if (points->size() + dropped < 230 - whole_from) return 23;
  for (const HistoryPoint& point : *points) {
    const auto second = std::chrono::floor<std::chrono::seconds>(point.time - at_second(0)).count();
    if (!same(point, busy_point(kOne, static_cast<std::uint64_t>(second)))) return 24;
  }
  return whole_from > 1 || decisions->size() == 229 ? 0 : 25;
}

}  // namespace

TEST_CASE("power cut while decisions are written: the file is whole and keeps its rows") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    constexpr unsigned kSeed = 31;
    std::mt19937 random(kSeed);
    std::uint64_t kept = 0;
    constexpr int kCuts = rounds(20);
    for (int cut = 0; cut < kCuts; ++cut) {
      // Some before the first checkpoint of the -wal, most after several.
      if (!lose_power_while_writing(disk, 1 + static_cast<int>(random() % 1500))) return 1;
      if (const int wrong = check_after_loss(disk, kept); wrong != 0) return wrong;
    }
    return kept > 50 * kCuts ? 0 : 2;
  });
}

TEST_CASE("a disk that stops answering: entries wait in the queue, and the reason is reported") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    Result<Store> store = open_on(disk);
    if (!store) return 1;
    StoreThread thread(*std::move(store));
    enqueue(thread, 1);
    if (!settle(thread) || thread.degraded()) return 2;
    if (!disk.cut_power()) return 3;
    for (std::uint64_t id = 2; id < 100; ++id) enqueue(thread, id);
    if (!settle(thread)) return 4;
    const auto counts = thread.counts();
    if (!thread.degraded() || counts.queued != 2 * 98) return 5;
    if (counts.dropped_points > kMostUnflushed || counts.dropped_journal != 0) return 6;
    return thread.flush_and_stop() ? 7 : 0;  // the error says how many entries are lost
  });
}

TEST_CASE("a disk that became read-only: entries wait in the queue, and the reason is reported") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    Result<Store> store = open_on(disk);
    if (!store) return 1;
    {
      StoreThread thread(*std::move(store));
      enqueue(thread, 1);
      if (!settle(thread) || thread.degraded()) return 2;
      if (!disk.abort()) return 3;
      for (std::uint64_t id = 2; id < 100; ++id) enqueue(thread, id);
      if (!settle(thread)) return 4;
      if (!thread.degraded() || thread.counts().queued != 2 * 98) return 5;
    }
    std::uint64_t kept = 0;
    if (!disk.mount_again()) return 6;
    return check_after_loss(disk, kept);
  });
}

// Like ext4 after an emergency remount.
TEST_CASE("a read-only disk that accepts writes to open files: samples are dropped and counted") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    Result<Store> store = open_on(disk);
    if (!store) return 1;
    std::uint64_t dropped = 0;
    {
      StoreThread thread(*std::move(store));
      if (!enqueue_each(thread, 1, 30) || thread.degraded()) return 2;
      if (!disk.cover_read_only() || !enqueue_each(thread, 30, 80)) return 3;
      const auto reported = thread.degraded();
      if (!reported || reported->find("is read-only") == std::string::npos) return 4;
      if (thread.counts().queued != 0) return 5;
      if (!disk.unmount() || !enqueue_each(thread, 80, 90) || thread.degraded()) return 6;
      dropped = thread.counts().dropped_points;
      if (dropped == 0 || !thread.flush_and_stop()) return 7;
    }
    Result<Store> after = open_on(disk);
    if (!after || after->quarantined()) return 8;
    const auto decisions = read_decisions(*after, kOne, WallTime::max(), 1 << 20);
    const auto points = after->history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
    return decisions && decisions->size() == 89 && points && points->size() + dropped == 89 ? 0 : 9;
  });
}

TEST_CASE("a disk that is mounted again after a power cut: the queue is written") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    return survive_loss(disk, &LoseableDisk::cut_power, 130);
  });
}

TEST_CASE("a disk that was read-only and is mounted again: at most one flush interval is lost") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    return survive_loss(disk, &LoseableDisk::sync_and_abort, 1);
  });
}

TEST_CASE("while a disk is lost queries fail, and names are requested when it is back") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    Result<Store> store = open_on(disk);
    if (!store) return 1;
    StoreThread thread(*std::move(store));
    const auto answered = [&thread] {
      std::promise<bool> answer;
      const bool accepted = thread.query([&answer](Store& open) {
        answer.set_value(open.records(0, 100).has_value());
      });
      return accepted && answer.get_future().get();
    };
    if (!enqueue_each(thread, 1, 130) || thread.drain_name_request() || !answered()) return 2;
    if (!disk.cut_power() || !enqueue_each(thread, 130, 200)) return 3;
    const auto reason = thread.degraded();
    if (!reason || reason->find("retrying with each batch") == std::string::npos) return 4;
    if (answered() || thread.drain_name_request()) return 5;
    if (!disk.mount_again() || !enqueue_each(thread, 200, 210) || !answered()) return 6;
    return thread.drain_name_request() && !thread.drain_name_request() ? 0 : 7;
  });
}
