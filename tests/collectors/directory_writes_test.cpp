#include "collectors/directory_writes.h"

#include <fcntl.h>

#include <vector>

#include "base/file.h"
#include "cgroupfs/knob_file.h"
#include "tests/collectors/fake_tree.h"
#include "tests/collectors/fill_inotify.h"

using namespace cgphase;

namespace {

struct WatchedDirectory : FakeTree {
  DirectoryWrites writes;
  Fd directory;
  int place = -1;

  WatchedDirectory() {
    for (const char* file : {"memory.max", "memory.events", "cpu.weight", "cgroup.procs"})
      write(std::string("/c/") + file, "0\n");
    directory = Fd(::open((root() + "/c").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    place = writes.add(directory.get());
    REQUIRE(place >= 0);
    (void)take();
  }
  DirectoryChange take() {
    writes.poll();
    return writes.drain(place);
  }
};

}  // namespace

TEST_CASE("a write to a limit is reported once, for its directory") {
  WatchedDirectory watched;
  watched.write("/d/memory.max", "0\n");
  const Fd other(::open((watched.root() + "/d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int elsewhere = watched.writes.add(other.get());
  (void)watched.writes.drain(elsewhere);
  watched.write("/c/cpu.weight", "7\n");
  const DirectoryChange change = watched.take();
  CHECK(change.limits);
  CHECK_FALSE(change.events);
  CHECK_FALSE(watched.writes.drain(elsewhere).limits);
  CHECK_FALSE(watched.take().limits);
}

TEST_CASE("new events do not change limits, and moving processes changes neither") {
  WatchedDirectory watched;
  watched.write("/c/memory.events", "low 1\n");
  const DirectoryChange change = watched.take();
  CHECK(change.events);
  CHECK_FALSE(change.limits);
  watched.write("/c/cgroup.procs", "1\n");
  CHECK_FALSE(watched.take().limits);
  CHECK_FALSE(watched.take().events);
}

TEST_CASE("each file that is read on a report has exactly one kind") {
  for (const char* file : {"memory.events", "memory.events.local", "cgroup.events"})
    CHECK((change_of(file).events && !change_of(file).limits));
  for (const char* file : {"cpu.max", "cpu.max.burst", "cpu.weight", "cpu.weight.nice", "cpu.idle",
                           "memory.max", "memory.high", "memory.low", "memory.min",
                           "memory.swap.max", "pids.max"})
    CHECK((change_of(file).limits && !change_of(file).events));
  for (const Knob knob : kKnobs) CHECK(change_of(file_name(knob)).limits);
}

TEST_CASE("a new watch counts as changed at first") {
  WatchedDirectory watched;
  watched.writes.remove(watched.place);
  watched.place = watched.writes.add(watched.directory.get());
  CHECK(watched.take().limits);
  CHECK_FALSE(watched.take().limits);
}

TEST_CASE("an unwatched directory always counts as changed") {
  WatchedDirectory watched;
  for (int i = 0; i < 2; ++i) {
    CHECK(watched.writes.drain(-1).limits);
    CHECK(watched.writes.drain(-1).events);
  }
}

TEST_CASE("after an overflow everything counts as changed") {
  WatchedDirectory watched;
  fill_inotify(watched.root() + "/c/memory.max", watched.root() + "/c/cpu.weight");
  CHECK(watched.take().events);
}
