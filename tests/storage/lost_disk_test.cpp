// A file system that fails below the store: power is cut, the disk answers no more, the kernel
// takes it for damaged. It is an ext4 in a file, in a mount namespace of a child's own. What a
// shutdown of it (FS_IOC_SHUTDOWN without its log) finds unwritten is lost, as with the power.
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
#include "tests/rounds.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr int kNotHere = 77;
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

// `body` in a child with a disk that may be lost tells the number of the first thing that is not as
// it must be, 0 if all is well.
void check_on_lost_disk(const std::function<int(const LoseableDisk&)>& body) {
  const ScratchDirectory scratch;
  const std::string folder = scratch.path("lost");
  std::filesystem::create_directory(folder);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      ::_exit(kNotHere);
    const LoseableDisk disk(folder);
    ::_exit(disk.make() ? body(disk) : kNotHere);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotHere) {
    MESSAGE("not run: no ext4 can be made in a file and mounted here");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
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
  const auto decisions = store->decisions(kOne, WallTime::max(), 1 << 20);
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

// A file system that fails through `fail` after 130 seconds and is mounted again later: 0 when the
// same store went on.
int go_on_after_loss(const LoseableDisk& disk, bool (LoseableDisk::*fail)() const) {
  Result<Store> store = open_on(disk);
  if (!store) return 1;
  StoreThread thread(*std::move(store));
  if (!enqueue_each(thread, 1, 130) || thread.degraded()) return 2;
  if (!(disk.*fail)() || !enqueue_each(thread, 130, 200) || !thread.degraded()) return 3;
  if (!disk.unmount()) return 4;  // the store has let go
  if (!enqueue_each(thread, 200, 210) || !thread.degraded()) return 5;
  if (std::filesystem::exists(disk.database)) return 6;  // no new one in its place
  if (!disk.mount() || !enqueue_each(thread, 210, 230) || thread.degraded()) return 7;
  const auto counts = thread.counts();
  if (counts.queued != 0 || counts.dropped_points + counts.dropped_journal != 0) return 8;
  return thread.flush_and_stop() ? 0 : 9;
}

// The same, and what came from second `whole_from` on is there.
int survive_loss(const LoseableDisk& disk, bool (LoseableDisk::*fail)() const,
                 std::uint64_t whole_from) {
  if (const int wrong = go_on_after_loss(disk, fail); wrong != 0) return wrong;
  Result<Store> after = open_on(disk);
  if (!after || after->quarantined() || after->damaged_count() != 0) return 20;
  const auto decisions = after->decisions(kOne, WallTime::max(), 1 << 20);
  const auto points = after->history(kOne, at_second(static_cast<double>(whole_from)),
                                     WallTime::max(), 1 << 20);
  if (!decisions || decisions->size() < 230 - 130) return 21;
  if (!points || points->size() != 230 - whole_from) return 22;
  for (std::uint64_t i = 0; i < points->size(); ++i)
    if (!same((*points)[i], busy_point(kOne, whole_from + i))) return 23;
  return whole_from > 1 || decisions->size() == 229 ? 0 : 24;
}

}  // namespace

TEST_CASE("power cut while decisions are written: the file is whole, what was in it stays") {
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

TEST_CASE("a disk that answers no more: what comes waits in memory, and it is told") {
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
    if (counts.dropped_points + counts.dropped_journal != 0) return 6;
    return thread.flush_and_stop() ? 7 : 0;  // and says that it was lost
  });
}

TEST_CASE("a disk that has become read-only: what comes waits in memory, and it is told") {
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

// As ext4 is after an emergency remount.
TEST_CASE("a disk that is read-only and takes writes to open files: it is told") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    Result<Store> store = open_on(disk);
    if (!store) return 1;
    {
      StoreThread thread(*std::move(store));
      if (!enqueue_each(thread, 1, 30) || thread.degraded()) return 2;
      if (!disk.cover_read_only() || !enqueue_each(thread, 30, 80)) return 3;
      const auto told = thread.degraded();
      if (!told || told->find("is read-only") == std::string::npos) return 4;
      if (thread.counts().queued != 0) return 5;
      if (!disk.unmount() || !enqueue_each(thread, 80, 90) || thread.degraded()) return 6;
      if (!thread.flush_and_stop()) return 7;
    }
    Result<Store> after = open_on(disk);
    if (!after || after->quarantined()) return 8;
    const auto decisions = after->decisions(kOne, WallTime::max(), 1 << 20);
    const auto points = after->history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
    return decisions && decisions->size() == 89 && points && points->size() == 89 ? 0 : 9;
  });
}

// Blocks that were full before are in the file as far as it got; the open one is in memory whole.
TEST_CASE("a disk that answers again after it was mounted anew: what waited is written") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    return survive_loss(disk, &LoseableDisk::cut_power, 121);
  });
}

TEST_CASE("a disk that was read-only and is mounted anew: nothing is missing, nothing is twice") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    return survive_loss(disk, &LoseableDisk::sync_and_abort, 1);
  });
}

// What was flushed before the loss is as far from the disk as what was not: the first batch on the
// disk that is back brings all of it, though no flush is due by its points' time.
TEST_CASE("a disk that is back gets each open block at once, not with the next flush that is due") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    Result<Store> store = open_on(disk);
    if (!store) return 1;
    for (std::uint64_t second = 1; second <= 30; ++second)
      if (!store->append({busy_point(kOne, second)}, {}, {})) return 2;
    if (!store->flush() || !disk.cut_power()) return 3;
    if (!store->append({busy_point(kOne, 31)}, {}, {})) return 4;
    for (int call = 0; call < 10; ++call)
      if (store->flush()) return 5;
    if (!disk.mount_again()) return 6;
    if (!store->append({busy_point(kOne, 32)}, {}, {})) return 7;
    // What a process that is killed now leaves behind.
    const std::string copy = disk.database + "-copy";
    for (const char* part : {"", "-wal"})
      std::filesystem::copy_file(disk.database + part, copy + part);
    Result<Store> left = Store::open({.path = copy, .boot_id = "boot-1"});
    if (!left || left->damaged_count() != 0) return 8;
    const auto points = left->history(kOne, WallTime::min(), WallTime::max(), 100);
    if (!points || points->size() != 31) return 9;
    for (std::uint64_t i = 0; i < 31; ++i)
      if (!same((*points)[i], busy_point(kOne, i + 1))) return 10;
    return 0;
  });
}

namespace {

// What a question is told: the number of samples and of events, and whether only of memory.
struct Told {
  std::size_t points = 0, events = 0, records = 0;
  bool unreadable = false;
};

std::optional<Told> ask(StoreThread& thread) {
  std::promise<std::optional<Told>> answer;
  const bool asked = thread.ask([&answer](Store& store) {
    const auto points = store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
    const auto events = store.events(std::nullopt, {.limit = 1 << 20});
    const auto records = store.records(0, 100);
    if (!points || !events || !records) return answer.set_value(std::nullopt);
    answer.set_value(Told{points->size(), events->size(), records->size(),
                          store.unreadable().has_value()});
  });
  return asked ? answer.get_future().get() : std::nullopt;
}

}  // namespace

// Of the seconds up to 200 those of the blocks that were not in the file at 130, which are from 61
// on, and all that came since; a question asked
// of the file is answered from there again once it is back.
TEST_CASE("while a disk is lost, questions are answered from what waits in memory, and say so") {
  check_on_lost_disk([](const LoseableDisk& disk) {
    Result<Store> store = open_on(disk);
    if (!store) return 1;
    StoreThread thread(*std::move(store));
    if (!enqueue_each(thread, 1, 130) || thread.take_name_request()) return 2;
    const auto before = ask(thread);
    if (!before || before->points != 129 || before->events != 129 || before->unreadable) return 3;
    if (!disk.cut_power() || !enqueue_each(thread, 130, 200)) return 4;
    const auto lost = ask(thread);
    if (!lost || !lost->unreadable || lost->events != 70 || lost->points != 139) return 5;
    if (lost->records != 1 || thread.counts().queued != 2 * 70) return 6;
    const auto told = thread.degraded();
    if (!told || told->find("only what waits in memory") == std::string::npos) return 7;
    if (!thread.take_name_request() || thread.take_name_request()) return 8;
    ContainerInfo named;
    named.id = kOne;
    named.name = "web";
    thread.enqueue({.containers = {{named, at_second(1)}}});
    if (!disk.mount_again() || !enqueue_each(thread, 200, 210)) return 9;
    const auto after = ask(thread);
    if (!after || after->unreadable || after->records != 1) return 10;
    return after->events > 70 && after->points >= 149 && !thread.degraded() ? 0 : 11;
  });
}
