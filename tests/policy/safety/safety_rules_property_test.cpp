// The laws of the safety rules for random containers on a simulated kernel.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "policy/safety/limit_arithmetic.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::seconds;

namespace {

constexpr int kRounds = 200;
constexpr int kTicks = 600;

// A world that changes at random and records what the laws check.
struct RandomWorld : SafetyWorld {
  explicit RandomWorld(std::uint32_t seed) : SafetyWorld(quick()), random(seed) {
    const std::uint64_t cores = 1 + random() % 16;
    sample.limits.cpu_max->quota = Microseconds{cores * 100'000};
    sample.limits.cpu_max_burst = Microseconds{random() % (cores * 100'000)};
    sample.limits.memory_max = MemoryLimit{Bytes{(1 + random() % 4096) * 4 * kMiB}};
    if (one_in(8)) sample.limits.cpu_max->quota.reset();
    if (one_in(8)) sample.limits.memory_max->bytes.reset();
    const std::uint64_t low_bytes = seed % 16 * kMiB;
    sample.limits.memory_min = sample.limits.memory_low = MemoryLimit{Bytes{low_bytes}};
    sample.limits.memory_high = seed % 4 == 0 ? MemoryLimit{Bytes{2 * low_bytes}} : MemoryLimit{};
    sample.limits.cpu_weight = 1 + seed % 10'000;
    if (seed % 3 == 0)
      input.terms = {.cpu_min = Cores{0.5 + seed % 4}, .memory_min = Bytes{seed % 8 * 256 * kMiB}};
    input.manage_unlimited = one_in(2);
    original = sample.limits;
    if (one_in(3)) without_psi();
    if (one_in(4)) sample.limits.cpu_max_burst.reset();
    original = sample.limits;
  }
  // Shorter waits, so that more happens in a round. The laws are the same.
  static SafetyConfig quick() {
    SafetyConfig config;
    config.cool_down = seconds(20);
    config.quarantine = seconds(200);
    config.trial = seconds(5);
    config.cpu_lower_window = config.memory_lower_window = seconds(8);
    config.host_lowers_per_window = 3;
    config.host_lower_window = seconds(30);
    config.start_up = seconds(2);
    config.settle = seconds(2);
    config.dwell = seconds(5);
    return config;
  }

  bool one_in(std::uint32_t chances) { return random() % chances == 0; }
  double share() { return static_cast<double>(random() % 10'001) / 1e4; }
  double ceiling_cores() const { return original.cpu_cores().value_or(Cores{16}).value; }
  double ceiling_bytes() const {
    return static_cast<double>(original.memory_bytes().value_or(Bytes{64 * kGiB}).value);
  }

  void disturb() {
    if (one_in(15)) recommendation.cpu = Cores{share() * ceiling_cores() * 1.2};
    if (one_in(15))
      recommendation.memory = Bytes{static_cast<std::uint64_t>(share() * ceiling_bytes())};
    if (one_in(40)) recommendation.cpu.reset();
    if (one_in(40)) recommendation.memory.reset();
    if (one_in(20)) cpu_cores = share() * share() * ceiling_cores();
    if (one_in(20))
      sample.memory.anon_bytes = static_cast<std::uint64_t>(share() * share() * ceiling_bytes());
    if (one_in(30))
      recommendation.cpu_sample_count = recommendation.memory_sample_count = one_in(4) ? 10 : 100;
    if (one_in(30)) input.phase = one_in(4) ? unknown() : known(static_cast<int>(random() % 3));
    if (one_in(60))
      input.mode = one_in(4) ? Mode::observe : one_in(4) ? Mode::advise : Mode::enforce;
    if (one_in(100)) input.hands_off = one_in(4);
    if (one_in(100)) sample.populated = !one_in(4);
    if (one_in(100)) sample.frozen = one_in(3);
    input.gap = one_in(60);
    throttled_periods = one_in(40) ? random() % 5 : 0;
    throttled_usec = one_in(40) ? random() % 200'000 : 0;
    refaults = one_in(50) ? random() % 40 : 0;
    major_faults = one_in(100) ? random() % 40 : 0;
    if (sample.cpu_pressure.some.avg10_ratio && one_in(20))
      set_pressure(share() * share() * 0.2, share() * share() * 0.002, share() * share() * 0.002);
    if (one_in(600)) *sample.memory_events.max += 1;
    if (one_in(1200)) *sample.memory_events.oom_kill += 1;
    if (one_in(300)) interfere();
  }
  void interfere() {  // somebody else writes a limit
    const auto bytes = static_cast<std::uint64_t>((0.1 + share()) * ceiling_bytes()) / 4096 * 4096;
    sample.limits.memory_max = MemoryLimit{Bytes{bytes}};
  }
  std::mt19937 random;
};

bool page_aligned(const Limits& limits) {
  const auto bytes = limits.memory_bytes();
  return !bytes || bytes->value % kPageBytes == 0;
}

bool burst_fits(const Limits& limits) {
  if (!limits.cpu_max || !limits.cpu_max->quota || !limits.cpu_max_burst) return true;
  return *limits.cpu_max_burst <= *limits.cpu_max->quota;
}

bool only_decided_differ(Limits after, const Limits& before) {
  after.cpu_max = before.cpu_max;
  after.cpu_max_burst = before.cpu_max_burst;
  after.memory_high = before.memory_high;
  return after == before;
}

void check_written(RandomWorld& world, const Decision& decision) {
  const Limits& original = world.safety.original();
  const HostCapacity& host = world.input.host;
  CHECK(page_aligned(decision.new_limits));
  CHECK(burst_fits(decision.new_limits));
  CHECK(*cpu_in_force(decision.new_limits, host) <= *cpu_in_force(original, host) + 1e-9);
  CHECK(*memory_in_force(decision.new_limits, host) <= *memory_in_force(original, host));
  CHECK(decision.new_limits != decision.old_limits);
  CHECK(only_decided_differ(decision.new_limits, decision.old_limits));
  CHECK(decision.new_limits.cpu_max->period == decision.old_limits.cpu_max->period);
}

void check_lowering(RandomWorld& world, const Decision& decision) {
  const HostCapacity& host = world.input.host;
  CHECK(world.input.mode == Mode::enforce);
  CHECK_FALSE(world.input.hands_off);
  CHECK_FALSE(world.input.gap);
  CHECK(world.input.phase.known());
  CHECK(world.recommendation.cpu_sample_count >= world.config.enough_samples);
  CHECK_FALSE(world.sample.frozen.value());
  if (decision.resource == Resource::memory) {
    const double old_bytes = *memory_in_force(decision.old_limits, host);
    MemoryState state;
    state.limit_bytes = old_bytes;
    state.need_bytes = static_cast<double>(memory_need(world.sample)->value);
    CHECK(*memory_in_force(decision.new_limits, host) >=
          memory_floor(world.config, decision.old_limits, state));
    CHECK(*memory_in_force(decision.new_limits, host) < old_bytes);
    CHECK(*memory_in_force(decision.new_limits, host) >=
          static_cast<double>(world.input.terms.memory_min.value_or(Bytes{}).value));
  } else {
    const double old_cores = *cpu_in_force(decision.old_limits, host);
    const double cores = *cpu_in_force(decision.new_limits, host);
    CHECK(decision.new_limits.cpu_max->quota->value >= 10'000);
    CHECK(cores >= old_cores - std::max(0.1 * old_cores, 2.0) - 1e-9);
    CHECK(cores < old_cores);
    CHECK(cores >= world.input.terms.cpu_min.value_or(Cores{}).value);
  }
}

}  // namespace

// rule: S-05, MEM-03, MEM-09, MEM-10, CPU-03
TEST_CASE("random containers never break the laws of lowering") {
  int lowerings = 0, raises = 0, events = 0;
  for (std::uint32_t seed = 1; seed <= kRounds; ++seed) {
    CAPTURE(seed);
    RandomWorld world(seed);
    std::deque<MonotonicTime> recent;
    std::optional<MonotonicTime> memory_event, last_cpu_lowering, last_memory_lowering;
    for (int i = 0; i < kTicks; ++i) {
      CAPTURE(i);
      world.disturb();
      const auto events_before = world.previous;
      const auto decisions = world.tick();
      const bool event = events_before &&
                         (*world.sample.memory_events.max > *events_before->memory_events.max ||
                          *world.sample.memory_events.oom_kill >
                              *events_before->memory_events.oom_kill);
      if (event) {
        events += 1;
        memory_event = world.time;
        CHECK(is_original(world.sample.limits, world.safety.original(), Resource::memory));
      }
      for (const Decision& decision : decisions) {
        if (decision.verdict != Verdict::allowed) continue;
        check_written(world, decision);
        raises += decision.direction == Direction::raise;
        if (decision.direction == Direction::raise) continue;
        lowerings += 1;
        check_lowering(world, decision);
        if (decision.resource == Resource::memory && memory_event)
          CHECK(world.time - *memory_event >= world.config.cool_down);
        const bool cpu = decision.resource == Resource::cpu;
        auto& last = cpu ? last_cpu_lowering : last_memory_lowering;
        CHECK((!last || world.time - *last >= (cpu ? world.config.cpu_lower_window
                                                   : world.config.memory_lower_window)));
        last = world.time;
        recent.push_back(world.time);
        while (world.time - recent.front() >= world.config.host_lower_window) recent.pop_front();
        CHECK(static_cast<int>(recent.size()) <= world.config.host_lowers_per_window);
      }
      if (world.input.mode != Mode::enforce || world.input.hands_off)
        CHECK((is_original(world.sample.limits, world.safety.original(), Resource::memory) ||
               world.all.empty()));
    }
  }
  // Enough happened in the rounds.
  CHECK(lowerings > 500);
  CHECK(raises > 500);
  CHECK(events > 100);
  MESSAGE("seeds 1.." << kRounds << ": " << lowerings << " lowerings, " << raises << " raises, "
                      << events << " memory events");
}

TEST_CASE("nothing is lowered in quarantine") {
  for (std::uint32_t seed = 1; seed <= kRounds; ++seed) {
    CAPTURE(seed);
    RandomWorld world(seed);
    std::optional<MonotonicTime> oom;
    for (int i = 0; i < kTicks; ++i) {
      world.disturb();
      const bool lowered =
          !is_original(world.sample.limits, world.safety.original(), Resource::memory);
      const auto before = world.previous;
      const auto decisions = world.tick();
      for (const Decision& decision : decisions)
        if (oom && decision.verdict == Verdict::allowed &&
            decision.resource == Resource::memory && decision.direction == Direction::lower)
          CHECK(world.time - *oom >= world.config.quarantine);
      const bool killed = before && *world.sample.memory_events.oom_kill >
                                        *before->memory_events.oom_kill;
      const bool restored = std::any_of(world.all.begin(), world.all.end(), [&](const Decision& d) {
        return d.time == world.time && d.reason == Reason::memory_event;
      });
      if (killed && lowered && restored) oom = world.time;
    }
  }
}

TEST_CASE("the same samples give the same decisions") {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    RandomWorld one(seed), two(seed);
    for (int i = 0; i < kTicks; ++i) {
      one.disturb();
      two.disturb();
      one.tick();
      two.tick();
    }
    REQUIRE(one.all.size() == two.all.size());
    for (std::size_t i = 0; i < one.all.size(); ++i) {
      CHECK(one.all[i].decision_id == two.all[i].decision_id);
      CHECK(one.all[i].new_limits == two.all[i].new_limits);
      CHECK(one.all[i].verdict == two.all[i].verdict);
    }
  }
}

TEST_CASE("a value read back after our write that is not ours is foreign") {
  SafetyWorld world;
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, 120);
  REQUIRE(lowering);
  world.sample.limits.memory_max = MemoryLimit{Bytes{5 * kGiB}};
  world.safety.written(*lowering, WriteEnd::done, world.sample.limits, world.time);
  world.tick();
  CHECK(world.safety.original().memory_bytes()->value == 5 * kGiB);
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
}

TEST_CASE("a knob that a decision does not change does not count as ours") {
  SafetyWorld world;
  const auto lowering = world.find(Resource::memory, Direction::lower, 120);
  REQUIRE(lowering);
  // The next sample is older than the end of this write, so it is not judged.
  world.safety.written(*lowering, WriteEnd::done, world.sample.limits,
                      world.time + seconds(1));
  world.sample.limits.cpu_max_burst = Microseconds{12'345};
  world.sample.memory.anon_bytes = world.memory_bytes() / 100 * 95;
  REQUIRE(world.find(Resource::memory, Direction::raise, 1));
  world.ticks(2);
  CHECK(world.safety.original().cpu_max_burst->value == 12'345);
}
