// Effective limits and savings on hosts and in cgroups that are smaller than the limits.
#include <doctest/doctest.h>

#include "policy/budget/saving.h"
#include "policy/ceiling.h"
#include "policy/safety/usage_tracker.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;

namespace {

Limits limits_of(std::uint64_t quota_usec, std::uint64_t bytes) {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{quota_usec}};
  limits.memory_max = MemoryLimit{Bytes{bytes}};
  return limits;
}

}  // namespace

TEST_CASE("an effective limit is at most the host's capacity and the ancestor limits") {
  const Limits large = limits_of(800'000, 64 * kGiB), small = limits_of(50'000, kMiB);
  HostCapacity host{.cpu_cores = 1, .memory = Bytes{kGiB}};
  CHECK(cpu_ceiling_cores(large, host) == 1);
  CHECK(memory_ceiling_bytes(large, host) == kGiB);
  CHECK(cpu_ceiling_cores(small, host) == 0.5);
  CHECK(memory_ceiling_bytes(small, host) == kMiB);
  CHECK(cpu_ceiling_cores({}, host) == 1);
  CHECK(capped_bytes(1e15, large, host) == Bytes{kGiB});
  host.ancestor_limits = {.cpu_cores = 0.25, .memory_bytes = 4096};
  CHECK(cpu_ceiling_cores(large, host) == 0.25);
  CHECK(memory_ceiling_bytes({}, host) == 4096);
}

TEST_CASE("a host with unknown capacity limits nothing") {
  const Limits large = limits_of(800'000, 64 * kGiB);
  CHECK(cpu_ceiling_cores(large, {}) == 8);
  CHECK(memory_ceiling_bytes(large, {}) == 64.0 * kGiB);
}

TEST_CASE("a limit above the host's capacity saves nothing until it is below that capacity") {
  const HostCapacity host{.cpu_cores = 1, .memory = Bytes{kGiB}};
  const Limits large = limits_of(800'000, 64 * kGiB);
  const auto saved = [&](const Limits& now) { return saving(large, now, within_host(host)); };
  CHECK(saved(limits_of(100'000, kGiB)).cpu_cores == 0);
  CHECK(saved(limits_of(100'000, kGiB)).memory_bytes == 0);
  CHECK(saved(limits_of(42'000, kMiB)).cpu_cores == doctest::Approx(0.58));
  CHECK(saved(limits_of(42'000, kMiB)).memory_bytes == kGiB - kMiB);
}

TEST_CASE("a limit above the host's capacity is lowered from that capacity, not from the file's "
          "value") {
  SafetyWorld world;
  world.sample.limits.cpu_max->quota = Microseconds{40'000'000};  // 400 cores
  world.sample.limits.memory_max = MemoryLimit{Bytes{1024 * kGiB}};
  world.original = world.sample.limits;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  CHECK(world.cores() < world.input.host.cpu_cores);
  REQUIRE(world.lowers(Resource::memory, kLong));
  CHECK(world.sample.limits.memory_bytes() < world.input.host.memory);
}

TEST_CASE("unexplained need counts as growing only above the pages that processors may reserve") {
  const auto growing_by = [](std::uint64_t bytes, bool explained) {
    SafetyWorld world;
    world.input.host.cpu_cores = 64;  // 2 x 64 pages x 64 CPUs: 32 MiB
    world.input.sample = &world.sample;
    world.input.interval_seconds = 1;
    UsageTracker senses(world.config);
    for (const std::uint64_t more : {std::uint64_t{0}, bytes}) {
      world.input.time += std::chrono::seconds(1);
      world.sample.memory_current = Bytes{2 * kGiB + more};
      if (explained) world.sample.memory.anon_bytes = 2 * kGiB + more;
      senses.add(world.input, false);
    }
    return senses.growing(static_cast<double>(kGiB));  // by more than 1 % of the limit
  };
  CHECK_FALSE(growing_by(32 * kMiB, false));
  CHECK(growing_by(44 * kMiB, false));
  CHECK_FALSE(growing_by(10 * kMiB, true));
  CHECK(growing_by(11 * kMiB, true));
}
