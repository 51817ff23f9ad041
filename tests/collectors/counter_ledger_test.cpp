#include "collectors/ebpf/counter_ledger.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "collectors/ebpf/cgroup_counter.h"
#include "collectors/ebpf/cgroup_owners.h"
#include "collectors/ebpf/cgroup_paths.h"
#include "collectors/ebpf/counter_records.h"
#include "tests/collectors/fake_tree.h"
#include "tests/emulation.h"

using namespace cgphase;

namespace {

using Ledger = CounterLedger<2>;
constexpr CgroupId kOuter{1, 100}, kInner{1, 200};

ContainerInfo container_at(CgroupId id, const char* path) {
  ContainerInfo info;
  info.id = id;
  info.path = path;
  return info;
}

NodeSample tick_with(std::vector<ContainerInfo> appeared, std::vector<CgroupId> vanished = {}) {
  NodeSample tick;
  tick.appeared = std::move(appeared);
  tick.vanished = std::move(vanished);
  return tick;
}

// Whether removed cgroups are recognised, in a plain directory too.
bool knows_the_gone(const FakeTree& tree) {
  if (!test::kMayBeEmulated || CgroupPaths(tree.root()).gone(kInner.inode)) return true;
  MESSAGE("skipped: removed cgroups are reported only with CAP_DAC_READ_SEARCH in the first user "
          "namespace");
  return false;
}

// Which of two samples get values, and which values.
template <class Tell>
std::map<CgroupId, std::uint64_t> told_by(const Tell& tell) {
  std::vector<Sample> samples(2);
  samples[0].id = kOuter;
  samples[1].id = kInner;
  std::map<CgroupId, std::uint64_t> reported;
  tell(samples, [&](Sample& sample, const auto& container) {
    reported[sample.id] = container.sum[0];
  });
  return reported;
}

}  // namespace

TEST_CASE("a container has the sum of the counts of its cgroups") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  ledger.take(2, {5, 2}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{15, 3});
  ledger.take(1, {30, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{35, 3});
  CHECK(ledger.of(kInner) == Ledger::Counts{0, 0});
}

TEST_CASE("counts stay when the record of a cgroup is deleted, and a new record adds to them") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  ledger.drop(1);
  CHECK(ledger.of(kOuter) == Ledger::Counts{10, 1});
  ledger.take(1, {3, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{13, 2});
}

TEST_CASE("a cgroup that moves to another container takes nothing from the first") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  ledger.take(1, {25, 2}, kInner);
  CHECK(ledger.of(kOuter) == Ledger::Counts{10, 1});
  CHECK(ledger.of(kInner) == Ledger::Counts{15, 1});
}

TEST_CASE("counts from before the container is known are added later") {
  Ledger ledger;
  ledger.take(1, {10, 1}, std::nullopt);
  ledger.take(1, {12, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{12, 1});
  ledger.forget(kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{0, 0});
}

TEST_CASE("a ledger that continues another has its sums and adds to them") {
  Ledger previous, ledger;
  previous.take(1, {10, 1}, kOuter);
  ledger.continue_from(previous.container_sums());
  CHECK(ledger.of(kOuter) == Ledger::Counts{10, 1});
  ledger.take(1, {3, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{13, 2});
  CHECK(ledger.has(kOuter));
  CHECK_FALSE(ledger.has(kInner));
}

TEST_CASE("a container without counts has zeros if the table is complete, else nothing") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  for (const bool complete : {true, false}) {
    const auto reported = told_by([&](std::span<Sample> samples, auto each) {
      ledger.for_each(samples, complete, each);
    });
    CHECK(reported.at(kOuter) == 10);
    CHECK(reported.contains(kInner) == complete);
  }
}

TEST_CASE("after a lost event, a container without a record has no counters for a minute") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  const __u64 entered = 0;  // 0: no map is read
  __u64 lost = 0;
  CounterTable<tcp_counts> table(-1, 1, entered, lost);
  table.continue_from({{kOuter, {7}}});
  const auto inner_is_told = [&](bool sweep) {
    REQUIRE(table.read(owners, sweep));
    const auto reported = told_by([&](std::span<Sample> samples, auto each) {
      table.for_each(samples, each);
    });
    CHECK(reported.at(kOuter) == 7);
    CHECK(table.of(kInner).has_value() == reported.contains(kInner));
    return reported.contains(kInner);
  };
  CHECK(inner_is_told(true));
  CHECK(inner_is_told(false));
  lost = 1;
  CHECK_FALSE(inner_is_told(false));
  CHECK_FALSE(inner_is_told(true));
  CHECK_FALSE(inner_is_told(false));
  CHECK(inner_is_told(true));
  CHECK(inner_is_told(false));
}

TEST_CASE("after a counter that lost events, zeros appear only after a minute") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  const __u64 entered = 0, lost = 0;
  CounterTable<tcp_counts> table(-1, 1, entered, lost);
  table.continue_from({{kOuter, {7}}});
  REQUIRE(table.read(owners, false));
  CHECK(table.of(kOuter) == CounterTable<tcp_counts>::Counts{7});
  CHECK_FALSE(table.of(kInner));
  REQUIRE(table.read(owners, true));
  CHECK(table.of(kInner) == CounterTable<tcp_counts>::Counts{0});
}

TEST_CASE("a cgroup belongs to the nearest container above it") {
  const FakeTree tree;  // finds no cgroup by its inode: only containers are known
  CgroupOwners owners(tree.root());
  owners.follow(tick_with({container_at(kOuter, "/a"), container_at(kInner, "/a/b")}));
  CHECK(owners.owner(kOuter.inode) == kOuter);
  CHECK(owners.owner(kInner.inode) == kInner);
  CHECK(owners.unknown() == 0);
  CHECK_FALSE(owners.owner(300));
  CHECK_FALSE(owners.owner(300));
  CHECK_FALSE(owners.owner(0));  // packets without a socket: it never existed, so it is never gone
  if (knows_the_gone(tree)) CHECK(owners.unknown() == 1);
}

TEST_CASE("a cgroup keeps its container until all counters have dropped it") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  owners.follow(tick_with({container_at(kInner, "/a/b")}));
  if (!knows_the_gone(tree)) return;
  for (int sweep = 0; sweep < 2; ++sweep) {  // the second sweep finds late counts
    CHECK(owners.drop_if_gone(kInner.inode));
    CHECK(owners.owner(kInner.inode) == kInner);
    CHECK(owners.drop_if_gone(kInner.inode));
    owners.end_sweep();
    CHECK(owners.owner(kInner.inode) == kInner);
  }
  CHECK(owners.unknown() == 0);
  owners.end_sweep();
  CHECK_FALSE(owners.owner(kInner.inode));
}

TEST_CASE("a container whose name is a prefix of another's is not its parent") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  owners.follow(tick_with({container_at(kOuter, "/a"), container_at(kInner, "/ab")}));
  owners.follow(tick_with({}, {kInner}));
  CHECK_FALSE(owners.owner(kInner.inode));
}

TEST_CASE("a cgroup that is gone with its container is forgotten later, not immediately") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  owners.follow(tick_with({container_at(kInner, "/a/b")}));
  owners.follow(tick_with({}, {kInner}));
  auto others_come = [&, next = std::uint64_t{1000}](int count) mutable {
    for (; count > 0; --count)
      owners.follow(tick_with({container_at({1, next++}, "/other")}));
  };
  others_come(5);
  CHECK_FALSE(owners.owner(kInner.inode));
  CHECK(owners.unknown() == 0);
  others_come(10);
  CHECK_FALSE(owners.owner(kInner.inode));
  if (knows_the_gone(tree)) CHECK(owners.unknown() == 1);  // looked up again
}
