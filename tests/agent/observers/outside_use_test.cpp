#include "agent/observers/outside_use.h"

#include <doctest/doctest.h>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

struct Machine : FakeTree {
  NodeSample tick;
  ContainerView view;

  Machine() {
    tick.host = {.cpu_cores = 2, .memory = Bytes{kGiB}};
    write("/proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 921600 kB\n");  // 124 MiB are used
    write("/cg/cpu.stat", "usage_usec 0\n");
    view.cpu_cores = 0.5;
    view.memory_need = Bytes{20 * kMiB};
  }
  // What is used outside in the second tick; `seconds` lie between the two.
  void observe(OutsideUse& outside, int seconds = 1) {
    const ContainerView* const views[] = {&view};
    outside.observe(tick, views);
    tick.time += std::chrono::seconds(seconds);
  }
  double memory() {
    OutsideUse outside(root() + "/cg", root() + "/proc");
    observe(outside);
    return outside.memory_bytes(1).value_or(-1);
  }
};

// Buckets of the histogram are up to 5 % wide.
doctest::Approx about(std::uint64_t bytes) {
  return doctest::Approx(static_cast<double>(bytes)).epsilon(0.06);
}

}  // namespace

TEST_CASE("memory in use outside of containers is what cannot be had, less their need") {
  Machine machine;
  CHECK(machine.memory() == about(104 * kMiB));
}

TEST_CASE("in a cgroup namespace what all in it need is in use, whatever the machine has left") {
  Machine machine;
  machine.tick.host.memory = Bytes{256 * kMiB};
  machine.write("/cg/memory.current", "209715200\n");  // 200 MiB, of which 50 are page cache
  machine.write("/cg/memory.stat", "anon 1048576\nfile 52428800\ninactive_file 52428800\n");
  CHECK(machine.memory() == about(130 * kMiB));
  machine.write("/proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 10240 kB\n");
  CHECK(machine.memory() == about(226 * kMiB));  // the machine itself has 10 MiB left
}

TEST_CASE("CPU time outside of containers is at most what the host has, and no part of a number") {
  Machine machine;
  OutsideUse outside(machine.root() + "/cg", machine.root() + "/proc");
  machine.observe(outside);
  machine.write("/cg/cpu.stat", "usage_usec 9000000\n");
  machine.observe(outside);
  CHECK(outside.cpu_cores(1).value_or(-1) <= 1.5 * 1.06);
  machine.write("/cg/cpu.stat", "usage_usec 99");
  machine.observe(outside);
  machine.write("/cg/cpu.stat", "usage_usec 9600000\n");
  machine.observe(outside);
  CHECK(outside.cpu_cores(1).value_or(-1) <= 1.5 * 1.06);
}
