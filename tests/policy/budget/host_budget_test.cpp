#include "policy/budget/host_budget.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace cgphase;

namespace {

// Containers that all request a lowering in each tick, in ascending order. After a lowering each
// waits for a minute, as under the safety rules.
struct Tenants {
  struct Tenant {
    std::string owner;
    CgroupId id;
    std::vector<int> served = {};  // seconds
  };

  void add(const std::string& owner, int count) {
    for (int i = 0; i < count; ++i) all.push_back({owner, {1, all.size() + 1}});
  }
  void run(int seconds) {
    for (const int end = now + seconds; now < end; now += 5)  // a slow tick
      for (Tenant& one : all) {
        if (!one.served.empty() && now - one.served.back() < 60) continue;
        if (!budget.may_lower(time(), one.owner, one.id, config)) continue;
        budget.lowered(time(), one.owner, one.id);
        one.served.push_back(now);
      }
  }
  std::size_t served(const std::string& owner) const {
    std::size_t count = 0;
    for (const Tenant& one : all) count += one.owner == owner ? one.served.size() : 0;
    return count;
  }
  MonotonicTime time() const { return MonotonicTime(std::chrono::seconds(now)); }

  HostBudget budget;
  SafetyConfig config;
  std::vector<Tenant> all;
  int now = 0;
};

}  // namespace

// rule: S-05
TEST_CASE("a host has four lowerings per minute, and the fifth waits") {
  HostBudget budget;
  const SafetyConfig config;
  const auto may = [&](int second) {
    return budget.may_lower(MonotonicTime(std::chrono::seconds(second)), "a", {1, 1}, config);
  };
  for (int second = 0; second < config.host_lowers_per_window; ++second) {
    CHECK(may(second));
    budget.lowered(MonotonicTime(std::chrono::seconds(second)), "a", {1, 1});
  }
  CHECK_FALSE(may(4));
  CHECK_FALSE(may(59));
  CHECK(may(60));
}

TEST_CASE("a single owner gets the whole budget, even with few containers") {
  Tenants tenants;
  tenants.add("a", 4);
  tenants.run(600);
  CHECK(tenants.served("a") == 40);
}

TEST_CASE("a thousand containers of one owner delay another owner by one window at most") {
  Tenants tenants;
  tenants.add("crowd", 1000);
  tenants.add("lone", 2);
  tenants.run(1200);
  std::vector<int> served;
  for (const int which : {1000, 1001})
    for (const int second : tenants.all[static_cast<std::size_t>(which)].served)
      served.push_back(second);
  std::ranges::sort(served);
  int before = -60;
  for (const int second : served) {
    CHECK(second - before <= 2 * 60 + 5);  // its own minute, then a window and a tick
    before = second;
  }
  CHECK(tenants.now - before <= 2 * 60 + 5);
  CHECK(tenants.served("crowd") >= 35);
}

TEST_CASE("each of many owners is served before another one is served twice") {
  Tenants tenants;
  for (int i = 0; i < 20; ++i) tenants.add("owner " + std::to_string(i), 50);
  // The first owner to ask is the only one known, so it gets the whole first window.
  tenants.run(60 * 5);
  CHECK(tenants.served("owner 0") == 4);
  for (int i = 1; i <= 16; ++i) CHECK(tenants.served("owner " + std::to_string(i)) == 1);
  tenants.run(60);
  for (int i = 17; i < 20; ++i) CHECK(tenants.served("owner " + std::to_string(i)) == 1);
}

TEST_CASE("none of a thousand containers of one owner starves") {
  Tenants tenants;
  tenants.add("a", 1000);
  tenants.run(60 * 251);
  for (const Tenants::Tenant& one : tenants.all) {
    CAPTURE(one.id.inode);
    CHECK(one.served.size() >= 1);
    CHECK(one.served.size() <= 2);
  }
}

TEST_CASE("an owner that stops asking delays no other") {
  HostBudget budget;
  const SafetyConfig config;
  const auto at = [](int second) { return MonotonicTime(std::chrono::seconds(second)); };
  CHECK(budget.may_lower(at(0), "a", {1, 1}, config));
  budget.lowered(at(0), "a", {1, 1});
  CHECK(budget.may_lower(at(0), "b", {1, 2}, config));  // and does not use it
  CHECK_FALSE(budget.may_lower(at(1), "a", {1, 3}, config));
  CHECK(budget.may_lower(at(2), "a", {1, 3}, config));
}

TEST_CASE("the maximum number of turns is remembered, and a further one drops the oldest") {
  HostBudget budget;
  SafetyConfig config;
  config.host_lowers_per_window = 1 << 20;
  const auto serve = [&](std::uint64_t number) {
    const MonotonicTime now{std::chrono::seconds(number)};
    budget.lowered(now, "a", {1, number});
  };
  for (std::uint64_t number = 1; number <= HostBudget::kMostTurns; ++number) serve(number);
  const auto first_has_its_turn = [&](std::uint64_t second) {
    const MonotonicTime now{std::chrono::seconds(second)};
    (void)budget.may_lower(now, "a", {2, second}, config);  // never served
    return budget.may_lower(now, "a", {1, 1}, config);
  };
  CHECK_FALSE(first_has_its_turn(HostBudget::kMostTurns + 1));
  serve(HostBudget::kMostTurns + 2);
  CHECK(first_has_its_turn(HostBudget::kMostTurns + 3));
}
