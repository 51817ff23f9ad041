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

// Who is gone is told, of a plain directory too: nobody is there.
bool knows_the_gone(const FakeTree& tree) {
  if (!test::kMayBeEmulated || CgroupPaths(tree.root()).gone(kInner.inode)) return true;
  MESSAGE("skipped: who is gone is not told here: it takes CAP_DAC_READ_SEARCH in the first user "
          "namespace");
  return false;
}

// Of which of two samples a container is told, and with what.
template <class Tell>
std::map<CgroupId, std::uint64_t> told_by(const Tell& tell) {
  std::vector<Sample> samples(2);
  samples[0].id = kOuter;
  samples[1].id = kInner;
  std::map<CgroupId, std::uint64_t> told;
  tell(samples, [&](Sample& sample, const auto& container) {
    told[sample.id] = container.sum[0];
  });
  return told;
}

}  // namespace

TEST_CASE("a container has the sum of what its cgroups counted") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  ledger.take(2, {5, 2}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{15, 3});
  ledger.take(1, {30, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{35, 3});
  CHECK(ledger.of(kInner) == Ledger::Counts{0, 0});
}

TEST_CASE("what a cgroup counted stays when its record is no more, and a new one adds to it") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  ledger.drop(1);
  CHECK(ledger.of(kOuter) == Ledger::Counts{10, 1});
  ledger.take(1, {3, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{13, 2});
}

TEST_CASE("a cgroup that becomes another container's takes nothing away from the first") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  ledger.take(1, {25, 2}, kInner);
  CHECK(ledger.of(kOuter) == Ledger::Counts{10, 1});
  CHECK(ledger.of(kInner) == Ledger::Counts{15, 1});
}

TEST_CASE("what is counted before its container is known waits for it") {
  Ledger ledger;
  ledger.take(1, {10, 1}, std::nullopt);
  ledger.take(1, {12, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{12, 1});
  ledger.forget(kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{0, 0});
}

TEST_CASE("a ledger that goes on from another has its sums and adds to them") {
  Ledger former, ledger;
  former.take(1, {10, 1}, kOuter);
  ledger.go_on_from(former.container_sums());
  CHECK(ledger.of(kOuter) == Ledger::Counts{10, 1});
  ledger.take(1, {3, 1}, kOuter);
  CHECK(ledger.of(kOuter) == Ledger::Counts{13, 2});
  CHECK(ledger.has(kOuter));
  CHECK_FALSE(ledger.has(kInner));
}

TEST_CASE("a container of which nothing was told has zeros where all was told, and else nothing") {
  Ledger ledger;
  ledger.take(1, {10, 1}, kOuter);
  for (const bool complete : {true, false}) {
    const auto told = told_by([&](std::span<Sample> samples, auto each) {
      ledger.for_each(samples, complete, each);
    });
    CHECK(told.at(kOuter) == 10);
    CHECK(told.contains(kInner) == complete);
  }
}

TEST_CASE("from a lost event until a minute without one, who has no record has no counters") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  const __u64 entered = 0;  // nobody: no map is read
  __u64 lost = 0;
  CounterTable<tcp_counts> table(-1, 1, entered, lost);
  table.go_on_from({{kOuter, {7}}});
  const auto inner_is_told = [&](bool sweep) {
    REQUIRE(table.read(owners, sweep));
    const auto told = told_by([&](std::span<Sample> samples, auto each) {
      table.for_each(samples, each);
    });
    CHECK(told.at(kOuter) == 7);
    CHECK(table.of(kInner).has_value() == told.contains(kInner));
    return told.contains(kInner);
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

TEST_CASE("after one that lost events a minute goes by before who has no record has zeros") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  const __u64 entered = 0, lost = 0;
  CounterTable<tcp_counts> table(-1, 1, entered, lost);
  table.go_on_from({{kOuter, {7}}});
  REQUIRE(table.read(owners, false));
  CHECK(table.of(kOuter) == CounterTable<tcp_counts>::Counts{7});
  CHECK_FALSE(table.of(kInner));
  REQUIRE(table.read(owners, true));
  CHECK(table.of(kInner) == CounterTable<tcp_counts>::Counts{0});
}

TEST_CASE("a cgroup belongs to the nearest container above it") {
  const FakeTree tree;  // knows no cgroup by its inode: only containers are known
  CgroupOwners owners(tree.root());
  owners.follow(tick_with({container_at(kOuter, "/a"), container_at(kInner, "/a/b")}));
  CHECK(owners.owner(kOuter.inode) == kOuter);
  CHECK(owners.owner(kInner.inode) == kInner);
  CHECK(owners.unknown() == 0);
  CHECK_FALSE(owners.owner(300));
  CHECK_FALSE(owners.owner(300));
  CHECK_FALSE(owners.owner(0));  // of packets without a socket: never there, so never gone
  if (knows_the_gone(tree)) CHECK(owners.unknown() == 1);
}

TEST_CASE("a cgroup that one counter has buried keeps its container until all have done so") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  owners.follow(tick_with({container_at(kInner, "/a/b")}));
  if (!knows_the_gone(tree)) return;
  for (int sweep = 0; sweep < 2; ++sweep) {  // what was counted late is found by the second
    CHECK(owners.bury(kInner.inode));
    CHECK(owners.owner(kInner.inode) == kInner);
    CHECK(owners.bury(kInner.inode));
    owners.end_sweep();
    CHECK(owners.owner(kInner.inode) == kInner);
  }
  CHECK(owners.unknown() == 0);
  owners.end_sweep();
  CHECK_FALSE(owners.owner(kInner.inode));
}

TEST_CASE("a container with another's name at its beginning is not above it") {
  const FakeTree tree;
  CgroupOwners owners(tree.root());
  owners.follow(tick_with({container_at(kOuter, "/a"), container_at(kInner, "/ab")}));
  owners.follow(tick_with({}, {kInner}));
  CHECK_FALSE(owners.owner(kInner.inode));
}

TEST_CASE("a cgroup that is gone with its container is not unknown at once, and forgotten later") {
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
  if (knows_the_gone(tree)) CHECK(owners.unknown() == 1);  // asked for anew
}
