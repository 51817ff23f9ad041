// A container of class batch stands still while the host is short, if its owner consents.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::seconds;

namespace {

struct FreezeWorld : SafetyWorld {
  explicit FreezeWorld(Mode mode = Mode::enforce) {
    sample.limits.frozen = false;
    original = sample.limits;
    recommendation = {};
    input.mode = mode;
    input.terms = {.service_class = ServiceClass::batch, .freeze_longest = seconds(30)};
    ticks(kLong);
  }
  bool frozen() const { return sample.limits.frozen.value(); }
  // Asked to stand still for so many ticks. Returns in how many of them it was.
  int ask(int count) {
    input.shortage = {true, 1e9};
    int still = 0;
    for (int i = 0; i < count; ++i) {
      tick();
      still += frozen();
    }
    return still;
  }
  std::vector<Decision> freezes() const {
    std::vector<Decision> found;
    std::ranges::copy_if(all, std::back_inserter(found), [](const Decision& decision) {
      return decision.resource == Resource::freeze;
    });
    return found;
  }
};

}  // namespace

// rule: BUDGET-07
TEST_CASE("a freeze needs class batch, consent, mode enforce and a request") {
  FreezeWorld world;
  CHECK(world.safety.may_freeze());
  CHECK(world.freezes().empty());
  CHECK(world.ask(1) == 1);
  const Decision made = world.freezes().at(0);
  CHECK(made.verdict == Verdict::allowed);
  CHECK(made.direction == Direction::lower);
  CHECK(made.reason == Reason::memory_short);
  CHECK(made.statistic == 1e9);
  CHECK(made.deadline() == made.time + seconds(30));
  for (const auto& refuse : std::initializer_list<void (*)(FreezeWorld&)>{
           [](FreezeWorld& w) { w.input.terms.freeze_longest.reset(); },
           [](FreezeWorld& w) { w.input.terms.service_class = ServiceClass::standard; },
           [](FreezeWorld& w) { w.input.terms.service_class = ServiceClass::critical; },
           [](FreezeWorld& w) { w.input.mode = Mode::observe; },
           [](FreezeWorld& w) { w.input.hands_off = true; },
           [](FreezeWorld& w) { w.sample.limits.frozen.reset(); }}) {
    FreezeWorld other;
    refuse(other);
    other.input.shortage = {true, 1e9};
    other.ticks(5);
    CHECK(other.freezes().empty());
    CHECK_FALSE(other.safety.may_freeze());
  }
}

// rule: BUDGET-07
TEST_CASE("mode advise reports a freeze once and writes nothing") {
  FreezeWorld world(Mode::advise);
  CHECK(world.ask(20) == 0);
  REQUIRE(world.freezes().size() == 1);
  CHECK(world.freezes()[0].verdict == Verdict::advise_mode);
  CHECK_FALSE(world.safety.may_freeze());
  // Nobody chooses a container that may not freeze, and the shortage goes on.
  world.input.shortage = {false, 1e9};
  world.ticks(100);
  CHECK_FALSE(world.safety.may_freeze());
  CHECK(world.freezes().size() == 1);
  world.input.shortage = {};
  world.tick();
  CHECK(world.safety.may_freeze());
}

// rule: S-07
TEST_CASE("a container with stale data is not frozen") {
  FreezeWorld world;
  world.input.gap = true;
  CHECK(world.ask(1) == 0);
  CHECK_FALSE(world.safety.may_freeze());
}

// rule: BUDGET-08
TEST_CASE("a freeze ends in time, and the container then runs as long before the next") {
  FreezeWorld world;
  int longest = 0, still = 0, runs = 0, shortest_run = 1000;
  for (int i = 0; i < 600; ++i) {
    const bool now = world.ask(1) == 1;
    if (now && still == 0 && longest > 0) shortest_run = std::min(shortest_run, runs);
    still = now ? still + 1 : 0;
    runs = now ? 0 : runs + 1;
    longest = std::max(longest, still);
  }
  CHECK(longest == 30);
  CHECK(shortest_run >= 30);
  CHECK(world.freezes().size() > 10);
  for (const Decision& one : world.freezes())
    if (one.direction == Direction::raise) CHECK(one.reason == Reason::freeze_over);
}

// rule: BUDGET-08
TEST_CASE("a freeze ends early when nothing is short, or when it is no longer allowed") {
  const auto ends = [](Reason reason, void (*change)(FreezeWorld&)) {
    FreezeWorld world;
    REQUIRE(world.ask(5) == 5);
    change(world);
    world.tick();
    return !world.frozen() && world.freezes().back().reason == reason;
  };
  CHECK(ends(Reason::memory_fits, [](FreezeWorld& w) { w.input.shortage = {}; }));
  CHECK(ends(Reason::restored, [](FreezeWorld& w) { w.input.terms.freeze_longest.reset(); }));
  CHECK(ends(Reason::freeze_over,
             [](FreezeWorld& w) { w.input.terms.freeze_longest = seconds(4); }));
  CHECK(ends(Reason::restored,
             [](FreezeWorld& w) { w.input.terms.service_class = ServiceClass::critical; }));
  for (const Mode mode : {Mode::observe, Mode::advise}) {
    FreezeWorld world;
    REQUIRE(world.ask(5) == 5);
    world.input.mode = mode;
    world.tick();
    CHECK_FALSE(world.frozen());
  }
  CHECK(ends(Reason::restored, [](FreezeWorld& w) { w.input.hands_off = true; }));
}

// rule: REST-01
TEST_CASE("a container that somebody else froze is left alone") {
  FreezeWorld world;
  world.sample.limits.frozen = world.sample.frozen = true;
  CHECK(world.ask(100) == 100);
  CHECK(world.freezes().empty());
  world.sample.limits.frozen = world.sample.frozen = false;
  CHECK(world.ask(1) == 0);  // just resumed, but nobody stands down
  world.ticks(10);
  CHECK(world.frozen());
}

// rule: S-08
TEST_CASE("a container that somebody else thaws is not frozen again soon") {
  FreezeWorld world;
  REQUIRE(world.ask(15) == 15);
  world.sample.limits.frozen = world.sample.frozen = false;
  world.input.shortage = {true, 1e9};
  world.ticks(14 * 60);
  CHECK(world.freezes().size() == 1);
  world.ticks(2 * 60);
  CHECK(world.freezes().size() > 1);
}

// rule: BUDGET-08
TEST_CASE("a thaw at the end of the lease is nobody's change, even if the daemon was late") {
  FreezeWorld world;
  REQUIRE(world.ask(15) == 15);
  world.time += seconds(20);
  world.sample.limits.frozen = world.sample.frozen = false;
  world.ask(60);
  CHECK(world.freezes().size() > 1);
}

// rule: REST-01
TEST_CASE("who thaws and later freezes a container himself is left alone") {
  FreezeWorld world;
  REQUIRE(world.ask(15) == 15);
  world.input.shortage = {};
  world.sample.limits.frozen = world.sample.frozen = false;
  world.ticks(60);
  world.sample.limits.frozen = world.sample.frozen = true;
  world.ticks(1200);
  CHECK(world.freezes().size() == 1);
  CHECK(world.frozen());
}

// rule: BUDGET-08
TEST_CASE("a thaw by the fast path begins the same rest") {
  FreezeWorld world;
  REQUIRE(world.ask(20) == 20);
  Decision thaw = world.freezes().back();
  thaw.decision_id = world.next_id++;
  thaw.direction = Direction::raise;
  thaw.reason = Reason::freeze_over;
  thaw.new_limits.frozen = false;
  world.write(thaw);
  CHECK(world.ask(18) == 0);  // 19 s passed since it was decided
  CHECK(world.ask(1) == 1);
}

TEST_CASE("after a failed freeze the next waits; a freeze without an answer is given up") {
  FreezeWorld world;
  world.apply = false;
  world.ask(1);
  REQUIRE(world.freezes().size() == 1);
  world.safety.written(world.freezes()[0], WriteEnd::failed, world.sample.limits, world.time);
  world.ticks(9);
  CHECK(world.freezes().size() == 1);
  world.ticks(2);
  CHECK(world.freezes().size() == 2);
  world.ticks(58);
  CHECK(world.freezes().size() == 2);
  world.ticks(3);
  CHECK(world.freezes().size() == 3);
}

// rule: S-04
TEST_CASE("what an earlier daemon left frozen thaws at once") {
  FreezeWorld world;
  SafetyWorld later;
  later.sample.limits.frozen = false;
  later.original = later.sample.limits;
  later.sample.limits.frozen = later.sample.frozen = true;
  later.input.terms = world.input.terms;
  later.input.shortage = {true, 1e9};
  later.tick();
  REQUIRE_FALSE(later.all.empty());
  CHECK(later.all.back().resource == Resource::freeze);
  CHECK(later.all.back().reason == Reason::restored);
  CHECK(later.sample.limits.frozen == false);
}
