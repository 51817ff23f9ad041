#include "policy/safety/quarantines.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "policy/safety/rails_memory.h"

using namespace cgphase;

namespace {

using nlohmann::json;
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

TEST_CASE("quarantines are read back as written, also with hostile names, and fit beside OOM "
          "floors") {
  RailsMemory memory;
  memory.quarantines = of_a_day("\xff\"\n");
  memory.quarantines.keep("job", Resource::cpu, hours(1), kEarned);
  memory.quarantines.follow_clock(kEarned - hours(1));
  const auto read = RailsMemory::from_json(json::parse(memory.to_json().dump()));
  REQUIRE(read.has_value());
  CHECK(read->to_json() == memory.to_json());
  CHECK(read->quarantines.left("\xff\"\n", Resource::memory, kEarned) == hours(24));
  for (std::size_t i = 0; i < Quarantines::kContainers; ++i)
    for (const Resource resource : {Resource::cpu, Resource::memory})
      memory.quarantines.keep(std::to_string(i) + std::string(Quarantines::kMostNameBytes - 3, 'a'),
                              resource, hours(24), kEarned);
  for (std::size_t i = 0; i < OomMemory::kImages; ++i)
    memory.ooms.remember(std::to_string(i) + std::string(OomMemory::kMostNameBytes - 3, 'a'),
                         {1.23456789e14, 0}, kEarned);
  CHECK(memory.quarantines.size() == Quarantines::kContainers);
  CHECK(memory.to_json().dump().size() < 256 * 1024);
}

TEST_CASE("a name is stored up to its maximum length") {
  CHECK(of_a_day(std::string(Quarantines::kMostNameBytes, 'a')).size() == 1);
  CHECK(of_a_day(std::string(Quarantines::kMostNameBytes + 1, 'a')).size() == 0);
}

TEST_CASE("damaged quarantines are refused, and missing ones from an older version are empty") {
  RailsMemory memory;
  memory.quarantines = of_a_day("job");
  const json good = memory.to_json();
  REQUIRE(RailsMemory::from_json(good).has_value());
  const auto refused = [&](const char* path, const json& value) {
    json changed = good;
    changed[json::json_pointer(path)] = value;
    return !RailsMemory::from_json(changed).has_value();
  };
  CHECK(refused("/quarantines", 1));
  CHECK(refused("/quarantines/job", 1));
  CHECK(refused("/quarantines/job/memory", 1));
  for (const json& length : {json(0), json(-1), json("1"), json(1e300), json(nullptr)})
    CHECK(refused("/quarantines/job/memory/seconds", length));
  for (const json& time : {json(-1), json(1.5), json(nullptr), json(1e30)}) {
    CHECK(refused("/quarantines/job/memory/time_ns", time));
    CHECK(refused("/quarantines/job/memory/ages_from_ns", time));
  }
  json older = good;
  older.erase("quarantines");
  const auto read = RailsMemory::from_json(older);
  REQUIRE(read.has_value());
  CHECK(read->quarantines.size() == 0);
}

TEST_CASE("merging two memories keeps the longer quarantine and the higher floor of each name") {
  RailsMemory earlier, now;
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
