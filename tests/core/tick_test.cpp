// The order in which one turn applies its input.
#include "core/tick.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/core/core_host.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// A host whose container is enforced, with a lowered CPU limit and no trial.
struct Lowered : Host {
  Lowered() {
    core.admit(kId, {.mode = Mode::enforce});
    for (int tick = 0; tick < 200 && !lowered_cpu(); ++tick) step(0.1);
    REQUIRE(lowered_cpu());
    for (int tick = 0; tick < 60; ++tick) step(0.1);
  }
  bool lowered_cpu() const { return limits().cpu_cores()->value < 1; }
  const ContainerView& view() const { return *core.find(kId); }
  Limits original() const { return view().original; }
  bool blocks(Verdict verdict) const {
    return std::ranges::any_of(last.decisions, [&](const Decision& decision) {
      return decision.verdict == verdict;
    });
  }
};

}  // namespace

TEST_CASE("tick: a raise by the fast path is known before the sample that shows it") {
  for (const bool reported : {true, false}) {
    CAPTURE(reported);
    Lowered host;
    Limits higher = host.original();
    higher.cpu_max->quota = Microseconds{90'000};
    const FastRaise raise = host.raise_fast(higher);
    if (reported) host.next.fast_raises = {raise};
    host.step(0.1);
    CHECK(host.view().in_force.cpu_max == higher.cpu_max);
    // Without the report, the new limit looks like a change by somebody else.
    CHECK((host.view().cpu_blocked_by == Verdict::standing_down) == !reported);
  }
}

TEST_CASE("tick: a raise by the fast path is a decision of its own") {
  Lowered host;
  const Limits before = host.limits();
  host.next.fast_raises = {host.raise_fast(host.original())};
  host.step(0.1);
  REQUIRE(host.last.applied.size() == 1);
  const AppliedChange& change = host.last.applied[0];
  CHECK(change.origin == AppliedChange::Origin::fast_path);
  CHECK(change.decision.direction == Direction::raise);
  CHECK(change.decision.reason == Reason::throttled);
  CHECK(change.decision.old_limits.cpu_max == before.cpu_max);
  CHECK(change.decision.new_limits.cpu_max == host.original().cpu_max);
  CHECK(change.in_force == change.decision.new_limits);
  CHECK(change.decision.usage == doctest::Approx(0.1));
}

TEST_CASE("tick: a raise of memory by the fast path has the need of the last sample") {
  Lowered host;
  host.next.fast_raises = {{.container = kId, .resource = Resource::memory,
                            .reason = Reason::headroom, .before = {},
                            .after = {.memory_high = MemoryLimit{}}, .time = host.now()}};
  host.step(0.1);
  REQUIRE(host.last.applied.size() == 1);
  CHECK(host.last.applied[0].decision.usage == 200.0 * kMiB);
}

TEST_CASE("tick: restored limits are known before the sample that shows them") {
  for (const bool reported : {true, false}) {
    CAPTURE(reported);
    Lowered host;
    const Limits before = host.limits();
    if (reported) host.next.restored = {{kId, Reason::silence, {}}};
    host.put(host.original(), false);
    host.step(0.1);
    CHECK((host.view().cpu_blocked_by == Verdict::silently_reverted) == !reported);
    if (!reported) continue;
    REQUIRE_FALSE(host.last.applied.empty());
    for (const AppliedChange& change : host.last.applied) {
      CHECK(change.origin == AppliedChange::Origin::restore);
      CHECK(change.decision.reason == Reason::silence);
    }
    CHECK(host.last.applied[0].decision.old_limits == before);
    CHECK(host.last.applied.back().in_force == host.original());
  }
}

TEST_CASE("tick: a weight that is put back is a decision in its own direction") {
  for (const auto& [service_class, direction] :
       {std::pair(ServiceClass::critical, Direction::lower),
        std::pair(ServiceClass::batch, Direction::raise)}) {
    Host host;
    Limits limits = host.limits();
    limits.cpu_weight = 100;
    host.put(limits, false);
    host.core.admit(kId, {.mode = Mode::enforce, .terms = {.service_class = service_class}});
    host.step(0.1);
    host.step(0.1);
    REQUIRE(host.limits().cpu_weight != 100);
    host.next.restored = {{kId, Reason::silence, {}}};
    host.put(limits, false);
    host.step(0.1);
    REQUIRE(host.last.applied.size() == 1);
    CHECK(host.last.applied[0].decision.direction == direction);
    CHECK(host.last.applied[0].in_force.cpu_weight == 100);
  }
}

TEST_CASE("tick: a resource whose knob is left lowered by a restore makes no decision") {
  Lowered host;
  host.next.restored = {{kId, Reason::restored, {Knob::cpu_max}}};
  host.writes = false;
  host.step(0.1);
  for (const AppliedChange& change : host.last.applied)
    CHECK(change.decision.resource == Resource::memory);
  CHECK(host.view().in_force.cpu_max == host.limits().cpu_max);
}

TEST_CASE("tick: a finished write comes before a raise of the same limit") {
  Host host;
  host.core.admit(kId, {.mode = Mode::enforce});
  host.writes = false;
  std::uint64_t lowering = 0;
  for (int tick = 0; tick < 200 && lowering == 0; ++tick)
    for (const Decision& decision : host.step(0.1))
      if (decision.verdict == Verdict::allowed && decision.resource == Resource::cpu)
        lowering = decision.decision_id;
  REQUIRE(lowering != 0);
  const Limits original = host.limits();
  Limits lower = original;
  lower.cpu_max->quota = Microseconds{50'001};
  const TickOutput output = host.core.step(
      {.now = host.now(),
       .writes = {{lowering, WriteEnd::done, lower, {}}},
       .fast_raises = {host.raise_fast(original)}});
  REQUIRE(output.applied.size() == 2);
  CHECK(output.applied[0].origin == AppliedChange::Origin::decision);
  CHECK(output.applied[0].in_force == lower);
  CHECK(output.applied[1].origin == AppliedChange::Origin::fast_path);
  CHECK(host.core.find(kId)->in_force.cpu_max == original.cpu_max);
}

TEST_CASE("tick: the outcome of a failed write has the writer's error") {
  Host host;
  host.core.admit(kId, {.mode = Mode::enforce});
  host.writes = false;
  std::uint64_t lowering = 0;
  for (int tick = 0; tick < 200 && lowering == 0; ++tick)
    for (const Decision& decision : host.step(0.1))
      if (decision.verdict == Verdict::allowed) lowering = decision.decision_id;
  REQUIRE(lowering != 0);
  const TickOutput output = host.core.step(
      {.now = host.now(),
       .writes = {{lowering, WriteEnd::failed, host.limits(), "cpu.max: Invalid argument"}}});
  REQUIRE(output.outcomes.size() == 1);
  CHECK(output.outcomes[0].kind == OutcomeKind::write_failed);
  CHECK(output.outcomes[0].detail == "cpu.max: Invalid argument");
  CHECK(host.core.totals().writes_failed == 1);
}

TEST_CASE("tick: another manager raises lowered limits in the tick that reports it") {
  Lowered host;
  host.next.other_manager = true;
  host.step(0.1);
  CHECK(host.limits() == host.original());
  host.step(0.1);
  CHECK(host.view().cpu_blocked_by == Verdict::hands_off);
}

TEST_CASE("tick: a fact applies to the sample of the same tick") {
  Lowered host;
  host.next.facts = {{kId, {.gpu = true}}};
  host.step(0.1);
  CHECK(host.limits().cpu_max == host.original().cpu_max);
  CHECK(std::ranges::any_of(host.last.decisions, [](const Decision& decision) {
    return decision.reason == Reason::gpu_seen;
  }));
}

TEST_CASE("tick: events without a sample decide nothing and are no tick") {
  Lowered host;
  const std::uint64_t ticks = host.core.totals().ticks;
  const TickOutput output =
      host.core.step({.now = host.now(), .restored = {{kId, Reason::restored, {}}}});
  CHECK(output.decisions.empty());
  CHECK_FALSE(output.applied.empty());
  CHECK(host.core.totals().ticks == ticks);
  CHECK(host.view().in_force == host.original());
}

TEST_CASE("tick: the writer of a limit is named in the tick that shows its value") {
  Lowered host;
  Limits theirs = host.original();
  theirs.cpu_max->quota = Microseconds{80'000};
  host.put(theirs, false);
  host.next.limit_writes = {{.time = host.now(), .directory = kId.inode, .file = "cpu.max",
                             .value = "80000", .pid = 7, .command = "tuned",
                             .writer_cgroup = 0, .writer_path = {}}};
  host.step(0.1);
  REQUIRE(host.blocks(Verdict::standing_down));
  REQUIRE_FALSE(host.last.writers.empty());
  CHECK(host.last.writers.begin()->second.find("tuned") != std::string::npos);
}
