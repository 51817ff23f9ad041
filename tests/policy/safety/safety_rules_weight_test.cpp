// The weight of a class, and the minimum that the owner asks for.
#include <doctest/doctest.h>

#include <algorithm>

#include "policy/safety/limit_arithmetic.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

struct WeightWorld : SafetyWorld {
  explicit WeightWorld(ServiceClass service_class, Mode mode = Mode::enforce) {
    sample.limits.cpu_weight = 100;
    original = sample.limits;
    recommendation = {};
    input.mode = mode;
    input.terms.service_class = service_class;
  }
  std::uint32_t weight() const { return sample.limits.cpu_weight.value(); }
  std::vector<Decision> weights() const {
    std::vector<Decision> found;
    std::ranges::copy_if(all, std::back_inserter(found), [](const Decision& decision) {
      return decision.resource == Resource::cpu_weight;
    });
    return found;
  }
};

}  // namespace

// rule: CPU-03
TEST_CASE("a weight is within ten times and a tenth, in the kernel's bounds, and no round number") {
  for (std::uint32_t original = 1; original <= 10'000; ++original) {
    CAPTURE(original);
    const std::uint32_t more = weight_of(ServiceClass::critical, original);
    const std::uint32_t less = weight_of(ServiceClass::batch, original);
    CHECK(weight_of(ServiceClass::standard, original) == original);
    CHECK(more >= original);
    CHECK(more <= std::min(10 * original, 10'000U));
    CHECK(less <= original);
    CHECK(less >= 1);
    CHECK(10 * less >= original);
    CHECK((more == original || more % 10 != 0));
    CHECK((less == original || less % 10 != 0));
  }
  CHECK(weight_of(ServiceClass::critical, 100) == 999);
  CHECK(weight_of(ServiceClass::batch, 100) == 11);
}

// rule: CPU-03
TEST_CASE("a critical container gets ten times its weight, a batch one a tenth, at once") {
  for (const auto& [service_class, weight] : {std::pair(ServiceClass::critical, 999U),
                                              std::pair(ServiceClass::batch, 11U)}) {
    WeightWorld world(service_class);
    world.tick();
    CHECK(world.weight() == weight);
    world.ticks(kLong);
    REQUIRE(world.weights().size() == 1);
    const Decision decision = world.weights()[0];
    CHECK(decision.reason == Reason::service_class);
    CHECK(decision.verdict == Verdict::allowed);
    Limits others = decision.new_limits;
    others.cpu_weight = decision.old_limits.cpu_weight;
    CHECK(others == decision.old_limits);
  }
}

// rule: CPU-03
TEST_CASE("nothing is written for a standard container, without the file, or for another manager") {
  WeightWorld standard(ServiceClass::standard);
  standard.ticks(kLong);
  CHECK(standard.weights().empty());
  WeightWorld without(ServiceClass::batch);
  without.sample.limits.cpu_weight.reset();
  without.original = without.sample.limits;
  without.ticks(kLong);
  CHECK(without.weights().empty());
  WeightWorld managed(ServiceClass::batch);
  managed.input.hands_off = true;
  managed.ticks(kLong);
  CHECK(managed.weights().empty());
}

// rule: CPU-05
TEST_CASE("the lever decides what is changed of CPU: weights, quotas, or both") {
  for (const CpuLever lever : {CpuLever::weight, CpuLever::quota, CpuLever::both}) {
    CAPTURE(to_string(lever));
    WeightWorld world(ServiceClass::batch);
    world.recommendation = SafetyWorld().recommendation;
    world.input.cpu_lever = lever;
    world.ticks(300);
    CHECK((world.weight() == 11) == (lever != CpuLever::quota));
    CHECK((world.cores() < 4) == (lever != CpuLever::weight));
    if (lever == CpuLever::weight)
      CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::shared_by_weight);
    // Whatever was set comes back when the other lever is chosen.
    world.input.cpu_lever = lever == CpuLever::weight ? CpuLever::quota : CpuLever::weight;
    world.ticks(2);
    CHECK((world.weight() == 100) == (lever == CpuLever::weight));
    if (lever != CpuLever::weight) CHECK(world.cores() == 4);
  }
}

// rule: CPU-05
TEST_CASE("an administrator's pin sets a quota whatever the lever is") {
  WeightWorld world(ServiceClass::standard);
  world.recommendation = SafetyWorld().recommendation;
  world.recommendation.cpu_pinned = true;
  world.input.cpu_lever = CpuLever::weight;
  CHECK(world.lowers(Resource::cpu, 300));
}

TEST_CASE("in advise mode a weight is reported once and not written; in observe mode neither") {
  WeightWorld advised(ServiceClass::critical, Mode::advise);
  advised.ticks(kLong);
  REQUIRE(advised.weights().size() == 1);
  CHECK(advised.weights()[0].verdict == Verdict::advise_mode);
  CHECK(advised.weights()[0].new_limits.cpu_weight == 999);
  CHECK(advised.weight() == 100);
  WeightWorld observed(ServiceClass::critical, Mode::observe);
  observed.ticks(kLong);
  CHECK(observed.weights().empty());
}

TEST_CASE("the original weight comes back when the class, the mode or the owner changes") {
  for (const int what : {0, 1, 2}) {
    CAPTURE(what);
    WeightWorld world(ServiceClass::batch);
    world.ticks(5);
    REQUIRE(world.weight() == 11);
    if (what == 0) world.input.terms = {};
    if (what == 1) world.input.mode = Mode::observe;
    if (what == 2) world.input.hands_off = true;
    world.ticks(2);
    CHECK(world.weight() == 100);
    CHECK(world.all.back().reason == Reason::restored);
    world.ticks(kLong);
    CHECK(world.weights().size() == 2);
  }
}

// rule: S-08
TEST_CASE("a weight that somebody else sets is the new original after a pause") {
  WeightWorld world(ServiceClass::critical);
  world.ticks(kLong);
  world.sample.limits.cpu_weight = 50;
  world.ticks(14 * 60);
  CHECK(world.weight() == 50);
  CHECK(world.safety.original().cpu_weight == 50);
  world.ticks(2 * 60);
  CHECK(world.weight() == 499);
}

// rule: S-08
TEST_CASE("a weight that a reload resets is set again, at most three times an hour") {
  WeightWorld world(ServiceClass::batch);
  world.ticks(kLong);
  for (int i = 0; i < 10; ++i) {
    world.sample.limits.cpu_weight = 100;
    world.input.reload = world.time + seconds(1);
    world.ticks(3 * 60);
  }
  CHECK(world.safety.original().cpu_weight == 100);
  CHECK(world.weights().size() == 4);
}

TEST_CASE("without a class a weight is nobody's business, and blocks nothing") {
  WeightWorld world(ServiceClass::standard);
  world.recommendation.cpu = Cores{2};
  world.recommendation.cpu_sample_count = 100;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.sample.limits.cpu_weight = 500;
  world.recommendation.cpu = Cores{1};
  CHECK(world.lowers(Resource::cpu, 2 * kLong));
  world.input.terms.service_class = ServiceClass::batch;
  world.ticks(2);
  CHECK(world.weight() == 51);
}

TEST_CASE("a failed write of a weight is tried again after ten seconds") {
  WeightWorld world(ServiceClass::batch);
  world.apply = false;
  const std::vector<Decision> first = world.tick();
  REQUIRE(first.size() == 1);
  world.safety.written(first[0], WriteEnd::failed, world.sample.limits, world.time);
  world.ticks(1);
  REQUIRE_FALSE(world.outcomes.empty());
  CHECK(world.outcomes[0].kind == OutcomeKind::write_failed);
  world.ticks(8);
  CHECK(world.weights().size() == 1);
  world.ticks(2);
  CHECK(world.weights().size() == 2);
}

// rule: TERM-01
TEST_CASE("no limit goes below the owner's minimum") {
  SafetyWorld world;
  world.input.terms = {.cpu_min = Cores{2.5}, .memory_min = Bytes{6 * kGiB}};
  world.ticks(20 * kLong);
  CHECK(world.cores() >= 2.5);
  CHECK(world.cores() < 2.6);
  CHECK(world.memory_bytes() >= 6 * kGiB);
  CHECK(world.memory_bytes() < 6 * kGiB + 2 * kMiB);
  // Also after a use that was higher.
  world.cpu_cores = 3.9;
  world.ticks(30);
  world.cpu_cores = 0.2;
  world.ticks(20 * kLong);
  CHECK(world.cores() >= 2.5);
}
