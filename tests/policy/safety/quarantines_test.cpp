#include "policy/safety/quarantines.h"

#include <doctest/doctest.h>

#include <string>

#include "policy/safety/safety_memory.h"

using namespace cgphase;

namespace {

using std::chrono::hours;

constexpr WallTime kEarned{std::chrono::seconds(1'700'000'000)};
constexpr std::chrono::nanoseconds kNone{0};

Quarantines of_a_day(const std::string& container) {
  Quarantines quarantines;
  quarantines.keep(container, Resource::memory, hours(24), kEarned);
  return quarantines;
}

}  // namespace

TEST_CASE("a quarantine applies to its container and resource until it ends") {
  const Quarantines quarantines = of_a_day("job");
  CHECK(quarantines.left("job", Resource::memory, kEarned + hours(1)) == hours(23));
  CHECK(quarantines.left("job", Resource::memory, kEarned + hours(25)) == kNone);
  CHECK(quarantines.left("job", Resource::cpu, kEarned) == kNone);
  CHECK(quarantines.left("jo", Resource::memory, kEarned) == kNone);
}

TEST_CASE("of two quarantines with one name the one that ends later counts") {
  Quarantines quarantines = of_a_day("job");
  quarantines.keep("job", Resource::memory, std::chrono::minutes(30), kEarned + hours(1));
  CHECK(quarantines.left("job", Resource::memory, kEarned + hours(2)) == hours(22));
  quarantines.keep("job", Resource::memory, hours(24), kEarned + hours(2));
  CHECK(quarantines.left("job", Resource::memory, kEarned + hours(2)) == hours(24));
}

TEST_CASE("setting the clock never extends a quarantine, and setting it back never ends one") {
  Quarantines ahead = of_a_day("job");
  CHECK_FALSE(ahead.follow_clock(kEarned));
  CHECK(ahead.follow_clock(kEarned - hours(9000)));
  CHECK(ahead.left("job", Resource::memory, kEarned - hours(9000)) == hours(24));
  CHECK(ahead.left("job", Resource::memory, kEarned - hours(9000 - 25)) == kNone);
  // The clock was only behind: the stored time counts.
  CHECK(ahead.left("job", Resource::memory, kEarned + hours(1)) == hours(23));
}

TEST_CASE("above the maximum number the quarantine that ends first is dropped") {
  Quarantines quarantines;
  for (std::size_t i = 0; i <= Quarantines::kContainers; ++i)
    quarantines.keep("c" + std::to_string(i), Resource::cpu, hours(i + 1), kEarned);
  CHECK(quarantines.size() == Quarantines::kContainers);
  CHECK(quarantines.left("c0", Resource::cpu, kEarned) == kNone);
  CHECK(quarantines.left("c1", Resource::cpu, kEarned) == hours(2));
  quarantines.keep("later", Resource::cpu, hours(1), kEarned + hours(1000));
  CHECK(quarantines.size() == 1);
}

TEST_CASE("a name is stored up to its maximum length") {
  CHECK(of_a_day(std::string(Quarantines::kMostNameBytes, 'a')).size() == 1);
  CHECK(of_a_day(std::string(Quarantines::kMostNameBytes + 1, 'a')).size() == 0);
}

TEST_CASE("merging two memories keeps the longer quarantine and the higher floor of each name") {
  SafetyMemory earlier, now;
  earlier.quarantines.keep("job", Resource::memory, hours(24), kEarned);
  earlier.quarantines.keep("both", Resource::cpu, hours(2), kEarned);
  now.quarantines.keep("both", Resource::cpu, hours(5), kEarned);
  earlier.ooms.remember("img", {.measured_bytes = 2e9, .limit_bytes = 0}, kEarned);
  now.ooms.remember("img", {.measured_bytes = 1e9, .limit_bytes = 0}, kEarned);
  earlier.ooms.remember("low", {.measured_bytes = 1e9, .limit_bytes = 0}, kEarned);
  now.ooms.remember("low", {.measured_bytes = 2e9, .limit_bytes = 0}, kEarned);
  now.add(earlier, kEarned + hours(1));
  CHECK(now.quarantines.left("job", Resource::memory, kEarned + hours(1)) == hours(23));
  CHECK(now.quarantines.left("both", Resource::cpu, kEarned + hours(1)) == hours(4));
  CHECK(now.ooms.floor_bytes("img", kEarned) == oom_floor_bytes(2e9));
  CHECK(now.ooms.floor_bytes("low", kEarned) == oom_floor_bytes(2e9));
}
