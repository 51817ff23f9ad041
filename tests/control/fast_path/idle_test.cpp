// The fast path's own thread while it watches no container. It wakes only every 10 s, but must wake
// at the first lowering.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "control/fast_path/fast_path.h"
#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;
using std::chrono::milliseconds;

namespace {

// System call numbers as /proc shows them. x86-64 has epoll_wait(2); arm64 has only epoll_pwait(2).
// The third is epoll_pwait(2) of x86-64: the kernel sees it for an arm64 program in qemu-user.
constexpr std::array<std::string_view, 3> kEpollWaits = {"232", "22", "281"};

// The timeout of the fast path's thread in epoll_wait(2), as the kernel reports it. Absent while
// the thread runs.
std::optional<milliseconds> fast_path_wait() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "cgphase-guard") continue;
    std::string number, descriptor, events, room, timeout;
    std::ifstream(task.path() / "syscall") >> number >> descriptor >> events >> room >> timeout;
    if (std::ranges::find(kEpollWaits, number) != kEpollWaits.end())
      return milliseconds(std::stol(timeout, nullptr, 16));
  }
  return std::nullopt;
}

bool idle() { return fast_path_wait() == kFastPathIdleInterval; }

// A fast path with its thread, and a container close to its lowered limit.
struct IdleFastPath {
  explicit IdleFastPath(bool sources) {
    auto table = LeaseTable::open({.runtime_dir = runtime.path(), .records = 16, .boot_id = "b"});
    REQUIRE(table);
    leases = std::move(*table);
    auto made = FastPath::create({.leases = leases.get(), .clock = &clock, .containers = 4,
                               .pressure = sources, .inotify = sources});
    REQUIRE(made);
    fast_path = std::move(*made);
    // A pipe accepts the text of a PSI trigger as the kernel does, and is never ready.
    for (const char* file : {"memory.pressure", "cpu.pressure"})
      if (sources) REQUIRE(::mkfifo((box.directory() + "/" + file).c_str(), 0600) == 0);
    box.put("memory.current", "520000000\n");
    box.put("memory.stat", "anon 500000000\nfile 0\nkernel 0\n");
    REQUIRE(fast_path->start());
  }
  void lower() {
    const KnobText before = text_of(box.get("memory.max")), to = text_of("536870912");
    const auto record =
        leases->record(box.id(), box.path(), Knob::memory_max, before, to, "test");
    box.put("memory.max", "536870912\n");
    REQUIRE(fast_path->cover(box.id(), box.open().get(), Knob::memory_max, record.value()));
  }
  // Half of the idle interval: a fast path that is not woken does not act in that time.
  bool acts() const {
    pollfd acted{fast_path->action_fd(), POLLIN, 0};
    return ::poll(&acted, 1, static_cast<int>(kFastPathIdleInterval.count() / 2)) == 1;
  }

  TemporaryDirectory root, runtime;
  FakeCgroup box{root.path()};
  SystemClock clock;
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<FastPath> fast_path;
};

}  // namespace

// With all signal sources and with none: the two ways to be woken.
TEST_CASE("a fast path without containers waits for 10 s, and the first lowering wakes it") {
  for (const bool sources : {true, false}) {
    IdleFastPath world(sources);
    while (!idle()) std::this_thread::yield();
    world.lower();
    CHECK(world.fast_path->pressure().present == sources);
    CHECK(world.acts());
    CHECK(world.box.get("memory.max") == "1073741824");
    CHECK(fast_path_wait() != kFastPathIdleInterval);
    world.fast_path->drop(world.box.id());
    while (!idle()) std::this_thread::yield();
  }
}
