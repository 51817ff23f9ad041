#include "control/writer/change_plan.h"

#include <doctest/doctest.h>

#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

namespace {

Limits limits_of(std::uint64_t quota_usec, std::uint64_t memory_bytes) {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{quota_usec}, Microseconds{100'000}};
  limits.memory_max = MemoryLimit{Bytes{memory_bytes}};
  return limits;
}

LimitChange change_of(const Limits& before, const Limits& after, bool raise = false) {
  LimitChange change;
  change.old_limits = before;
  change.new_limits = after;
  change.raise = raise;
  return change;
}

LeasesByKnob leased_cpu(std::string_view original, std::string_view ours) {
  LeaseValues values;
  values.original = text_of(original);
  values.model[0] = text_of(ours);
  LeasesByKnob leased;
  leased.add(Knob::cpu_max, values);
  return leased;
}

}  // namespace

TEST_CASE("only knobs that differ are written") {
  const Limits before = limits_of(200'000, kGiB);
  const auto steps = plan_change(change_of(before, limits_of(150'000, kGiB)), before, {});
  REQUIRE(steps->size() == 1);
  CHECK(steps->front().knob == Knob::cpu_max);
  CHECK(steps->front().from.view() == "200000 100000");
  CHECK(steps->front().to.view() == "150000 100000");
  CHECK(steps->front().lowers);
}

TEST_CASE("a lowering is refused if the file contains another value than at the decision") {
  const auto steps =
      plan_change(change_of(limits_of(200'000, kGiB), limits_of(150'000, kGiB)),
                  limits_of(180'000, kGiB), leased_cpu("200000 100000", "180000 100000"));
  CHECK(steps.error().kind == ErrorKind::invalid);
}

TEST_CASE("a raise starts from any value of ours") {
  const LimitChange change = change_of(limits_of(100'000, kGiB), limits_of(150'000, kGiB), true);
  const auto leased = leased_cpu("200000 100000", "80000 100000");
  const auto steps = plan_change(change, limits_of(80'000, kGiB), leased);
  REQUIRE(steps);
  CHECK(steps->front().to.view() == "150000 100000");
  CHECK(plan_change(change, limits_of(70'000, kGiB), leased).error().kind == ErrorKind::invalid);
}

TEST_CASE("a raise never starts from a foreign value, even if the decision was based on it") {
  const LimitChange change = change_of(limits_of(70'000, kGiB), limits_of(200'000, kGiB), true);
  const auto leased = leased_cpu("200000 100000", "100000 100000");
  const auto steps = plan_change(change, limits_of(70'000, kGiB), leased);
  REQUIRE_FALSE(steps);
  CHECK(steps.error().kind == ErrorKind::invalid);
  CHECK_FALSE(plan_change(change, limits_of(70'000, kGiB), {}));
}

// rule: BUDGET-03
TEST_CASE("a grant starts from the original that was read, or from a value of ours") {
  LimitChange change = change_of(limits_of(70'000, kGiB), limits_of(200'000, kGiB), true);
  change.grant = true;
  const auto steps = plan_change(change, limits_of(70'000, kGiB), {});
  REQUIRE(steps);
  CHECK(steps->front().to.view() == "200000 100000");
  CHECK_FALSE(plan_change(change, limits_of(60'000, kGiB), {}));
  const auto leased = leased_cpu("70000 100000", "90000 100000");
  CHECK(plan_change(change, limits_of(90'000, kGiB), leased));
  CHECK_FALSE(plan_change(change, limits_of(80'000, kGiB), leased));
}

TEST_CASE("a raise below the limit in force writes nothing") {
  const LimitChange change = change_of(limits_of(100'000, kGiB), limits_of(150'000, kGiB), true);
  const auto leased = leased_cpu("200000 100000", "100000 100000");
  CHECK(plan_change(change, limits_of(200'000, kGiB), leased)->empty());
}

TEST_CASE("a raise omits writes that would lower") {
  const Limits before = limits_of(100'000, kGiB);
  Limits after = limits_of(150'000, kGiB);
  after.memory_max = MemoryLimit{Bytes{kGiB / 2}};
  LeasesByKnob leased = leased_cpu("200000 100000", "100000 100000");
  LeaseValues memory;
  memory.original = text_of("1073741824");
  leased.add(Knob::memory_max, memory);
  const auto steps = plan_change(change_of(before, after, true), before, leased);
  REQUIRE(steps->size() == 1);
  CHECK(steps->front().knob == Knob::cpu_max);
}

TEST_CASE("a burst above the new quota is lowered before the quota") {
  Limits before = limits_of(200'000, kGiB);
  before.cpu_max_burst = Microseconds{180'000};
  Limits after = before;
  after.cpu_max->quota = Microseconds{100'000};
  const auto steps = plan_change(change_of(before, after), before, {});
  REQUIRE(steps->size() == 2);
  CHECK(steps->at(0).knob == Knob::cpu_max_burst);
  CHECK(steps->at(0).to.view() == "100000");
  CHECK(steps->at(1).knob == Knob::cpu_max);
}

TEST_CASE("a burst is restored after the quota that limits it") {
  Limits before = limits_of(100'000, kGiB);
  before.cpu_max_burst = Microseconds{100'000};
  Limits after = before;
  after.cpu_max->quota = Microseconds{200'000};
  LeaseValues burst;
  burst.original = text_of("180000");
  burst.model[0] = text_of("100000");
  LeasesByKnob leased = leased_cpu("200000 100000", "100000 100000");
  leased.add(Knob::cpu_max_burst, burst);
  const auto steps = plan_change(change_of(before, after, true), before, leased);
  REQUIRE(steps->size() == 2);
  CHECK(steps->at(0).knob == Knob::cpu_max);
  CHECK(steps->at(1).knob == Knob::cpu_max_burst);
  CHECK(steps->at(1).to.view() == "180000");
  // A foreign burst stays.
  before.cpu_max_burst = after.cpu_max_burst = Microseconds{50'000};
  CHECK(plan_change(change_of(before, after, true), before, leased)->size() == 1);
}

TEST_CASE("a value out of bounds is refused before anything is written") {
  const Limits before = limits_of(200'000, kGiB);
  CHECK(plan_change(change_of(before, limits_of(999, kGiB)), before, {}).error().kind ==
        ErrorKind::invalid);
}

TEST_CASE("a knob that this cgroup does not have is not found") {
  const Limits before = limits_of(200'000, kGiB);
  Limits file = before;
  file.cpu_max.reset();
  CHECK(plan_change(change_of(before, limits_of(150'000, kGiB)), file, {}).error().kind ==
        ErrorKind::not_found);
}
