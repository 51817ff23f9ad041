// Compares what a walk by a BPF program counts with cpu.stat and cpu.pressure: file, walk, file
// again, or what the daemon does by itself and then the file. What needs controllers is
// compared in a guest (tests/kernel/pull_kernel_test.cpp).
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectors/cgroup_files.h"
#include "collectors/ebpf/kernel_pull.h"
#include "collectors/node_sampler.h"
#include "tests/collectors/bpf_fixture.h"
#include "tests/kernel/stopped.h"

namespace cgphase {
namespace {

constexpr std::size_t kPullRoom = 64;
constexpr const char* kPullWays[] = {"BPF css iterator", "BPF iterator"};
constexpr int kFlushTurns = 8;
constexpr int kMadeBesideWalks = 200, kWalksBesideMade = 100;

// The work of a process: it stops after some CPU time, each time that it is continued.
[[noreturn]] int burn_and_stop() {
  for (;;) {
    for (int i = 0; i < 20'000'000; ++i) asm volatile("");
    ::raise(SIGSTOP);
  }
}

Sample files_of(const HostCgroup& cgroup) {
  CgroupFiles files(open_path(cgroup.directory(), O_RDONLY | O_DIRECTORY).value());
  std::vector<char> buffer(kKernelTextBytes);
  Sample sample;
  REQUIRE(files.read(MonotonicTime{}, sample, buffer));
  return sample;
}

std::unique_ptr<CgroupPull> pull_by(const char* way, std::size_t room = kPullRoom) {
  auto pull = start_kernel_pull(cgroup2_mount(), room, way);
  REQUIRE_MESSAGE(pull.has_value(), (pull ? "" : pull.error().text));
  CHECK((*pull)->name() == std::string(way));
  return std::move(*pull);
}

}  // namespace

TEST_CASE("CPU time and stalls of a walk equal those of the files, in each way") {
  for (const char* way : kPullWays) {
    CAPTURE(way);
    const HostCgroup cgroup;
    const auto pull = pull_by(way);
    const auto place = pull->add(cgroup.id().inode);
    REQUIRE(place.has_value());
    const BornIn worker(cgroup, burn_and_stop);
    AdjustedCpuTime time;
    AgingStalls stalls;
    int compared = 0;
    for (int turn = 0; turn < 40 && compared < 4; ++turn) {
      REQUIRE(await_stop(worker.pid()));
      const Sample before = files_of(cgroup);
      REQUIRE(pull->walk(0));
      const Sample after = files_of(cgroup);
      const pull_record* record = pull->record(*place);
      REQUIRE(record != nullptr);
      stalls.take(*record);
      if (before.cpu.usage_usec == after.cpu.usage_usec &&
          before.cpu_pressure.some.total_usec == after.cpu_pressure.some.total_usec) {
        ++compared;
        CpuStat cpu = cpu_stat_of(*record);
        time.fill(*record, cpu);
        CHECK(cpu.usage_usec == after.cpu.usage_usec);
        CHECK(cpu.user_usec == after.cpu.user_usec);
        CHECK(cpu.system_usec == after.cpu.system_usec);
        CHECK(cpu.usage_usec > 0);
        CHECK(stalls.pressure(2).some.total_usec == after.cpu_pressure.some.total_usec);
        CHECK(stalls.pressure(0).full.total_usec == after.io_pressure.full.total_usec);
      }
      REQUIRE(::kill(worker.pid(), SIGCONT) == 0);
    }
    CHECK(compared == 4);
  }
}

// No file is read before that would update CPU time: only the daemon's flush does. A walk right
// before it returns less, so that the kernel did not update it by itself.
TEST_CASE("the daemon's flush and walk have CPU time until a process stopped, in each way") {
  for (const char* way : kPullWays) {
    CAPTURE(way);
    const HostCgroup parent;
    const HostCgroup cgroup(parent.path());
    const auto early = pull_by(way);
    const auto place = early->add(cgroup.id().inode);
    REQUIRE(place.has_value());
    auto sampler = NodeSampler::open({.cgroup_root = cgroup2_mount(),
                                      .include = {parent.path() + "/*"},
                                      .open_pull = [way](std::size_t room) {
                                        return start_kernel_pull(cgroup2_mount(), room, way);
                                      }});
    REQUIRE(sampler.has_value());
    const BornIn worker(cgroup, burn_and_stop);
    ManualClock clock;
    NodeSample tick;
    int late = 0;
    for (int turn = 0; turn < kFlushTurns; ++turn) {
      REQUIRE(await_stop(worker.pid()));
      clock.advance(std::chrono::seconds(1));
      REQUIRE(early->walk(0));
      sampler->sample(clock, tick);
      const Sample after = files_of(cgroup);
      const auto at = std::ranges::find(tick.containers, cgroup.id(), &Sample::id);
      REQUIRE(at != tick.containers.end());
      CHECK(at->cpu.usage_usec == after.cpu.usage_usec);
      REQUIRE(early->record(*place) != nullptr);
      late += cpu_stat_of(*early->record(*place)).usage_usec < after.cpu.usage_usec;
      REQUIRE(::kill(worker.pid(), SIGCONT) == 0);
    }
    CHECK(2 * late > kFlushTurns);
  }
}

// The kernel's iterator locks the mutex that this needs, the other way locks none. bench_mkdir
// measures how long one waits for the other.
TEST_CASE("cgroups are created and removed during walks, in each way") {
  for (const char* way : kPullWays) {
    CAPTURE(way);
    const HostCgroup stays;
    const auto pull = pull_by(way);
    const auto place = pull->add(stays.id().inode);
    REQUIRE(place.has_value());
    std::atomic<int> made{0}, walks{0};
    std::atomic<bool> refused{false};
    const auto enough = [&] {
      return refused || (made >= kMadeBesideWalks && walks >= kWalksBesideMade);
    };
    std::thread maker([&, path = stays.directory() + "/made"] {
      while (!enough()) {
        if (::mkdir(path.c_str(), 0755) != 0 || ::rmdir(path.c_str()) != 0) refused = true;
        ++made;
      }
    });
    int reported = 0;
    while (!enough()) {
      reported += pull->walk(0) && pull->record(*place) != nullptr;
      ++walks;
    }
    maker.join();
    CHECK_FALSE(refused);
    CHECK(reported == walks);
  }
}

TEST_CASE("a walk has no values of a missing controller or a removed cgroup") {
  for (const char* way : kPullWays) {
    CAPTURE(way);
    HostCgroup cgroup;
    const auto pull = pull_by(way);
    const auto place = pull->add(cgroup.id().inode);
    REQUIRE(place.has_value());
    REQUIRE(pull->walk(0));
    REQUIRE(pull->record(*place) != nullptr);
    CHECK((pull->record(*place)->parts & PULL_CPU) != 0);
    const bool memory = (pull->record(*place)->parts & PULL_MEMORY) != 0;
    CHECK(memory == (::access((cgroup.directory() + "/memory.current").c_str(), F_OK) == 0));
    CHECK(pull->raw().empty());
    cgroup.remove();
    REQUIRE(pull->walk(0));
    CHECK(pull->record(*place) == nullptr);
  }
}

// An iterator that prints ends after 32 KiB; this one fills a map.
TEST_CASE("cgroups up to the room are walked over, one more gets no place") {
  constexpr std::size_t kMany = 600;  // half a kilobyte each
  for (const char* way : kPullWays) {
    CAPTURE(way);
    const auto pull = pull_by(way, kMany);
    std::vector<std::unique_ptr<HostCgroup>> cgroups;
    std::vector<std::uint32_t> places;
    for (std::size_t i = 0; i < kMany; ++i) {
      cgroups.push_back(std::make_unique<HostCgroup>());
      const auto place = pull->add(cgroups.back()->id().inode);
      REQUIRE(place.has_value());
      places.push_back(*place);
    }
    const HostCgroup beyond;
    CHECK_FALSE(pull->add(beyond.id().inode).has_value());
    REQUIRE(pull->walk(0));
    CHECK(std::ranges::count_if(places, [&](std::uint32_t place) {
      return pull->record(place) != nullptr;
    }) == static_cast<std::ptrdiff_t>(kMany));
    pull->remove(cgroups[5]->id().inode, places[5]);
    CHECK(pull->add(beyond.id().inode) == places[5]);
  }
}

}  // namespace cgphase
