#include "core/core.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <nlohmann/json.hpp>
#include <utility>

#include "policy/learned_json.h"
#include "tests/core/core_host.h"

using namespace cgphase;
using namespace cgphase::test;

TEST_CASE("creating a pipeline with an unknown policy fails") {
  const auto core = Core::create({.policy = "phse"}, small_engine());
  REQUIRE_FALSE(core);
  CHECK(core.error().kind == ErrorKind::invalid);
  CHECK(core.error().text.find("phase") != std::string::npos);
}

TEST_CASE("a container that was not admitted is observed and never changed") {
  Host host;
  for (int tick = 0; tick < 200; ++tick)
    for (const Decision& decision : host.step(0.1)) CHECK(decision.verdict != Verdict::allowed);
  CHECK(host.limits().cpu_cores()->value == 1.0);
  CHECK(host.core.find(kId)->mode == Mode::observe);
}

TEST_CASE("an enforced container with little use is lowered, and the savings are counted") {
  Host host;
  host.core.admit(kId, {.mode = Mode::enforce});
  for (int tick = 0; tick < 200; ++tick) host.step(0.1);
  CHECK(host.lowered);
  CHECK(host.limits().cpu_cores()->value < 1.0);
  CHECK(host.core.find(kId)->saved_core_seconds > 0);
  CHECK(host.core.find(kId)->original.cpu_cores()->value == 1.0);
}

namespace {

CoreConfig never_lowers() {
  CoreConfig config = Host::quick();
  config.policy = "static";
  return config;
}

double cores(const Host& host) { return host.limits().cpu_cores()->value; }
double mib(const Host& host) {
  return static_cast<double>(host.limits().memory_bytes()->value) / kMiB;
}

// Whether every change in these ticks has the reason `reason`.
bool steps_for(Host& host, int ticks, Reason reason) {
  bool same = true;
  for (int i = 0; i < ticks; ++i)
    for (const Decision& decision : host.step(0.1))
      if (decision.verdict == Verdict::allowed) same = same && decision.reason == reason;
  return same;
}

}  // namespace

TEST_CASE("a pin replaces the recommendation: down as the safety rules allow, up at once") {
  Host host(never_lowers());
  host.core.admit(kId, {.mode = Mode::enforce});
  CHECK(steps_for(host, 600, Reason::pinned));
  CHECK_FALSE(host.lowered);
  host.core.set_pin(kId, {.cpu = Cores{0.3}});
  CHECK(steps_for(host, 600, Reason::pinned));
  CHECK(cores(host) == doctest::Approx(0.3));
  CHECK(mib(host) == 1024);  // not pinned
  CHECK(host.core.find(kId)->recommendation.cpu->value == 0.3);
  host.core.set_pin(kId, {.cpu = Cores{0.8}});
  CHECK(steps_for(host, 2, Reason::pinned));
  CHECK(cores(host) == doctest::Approx(0.8));
}

TEST_CASE("the safety rules keep a pin above need, and raises of the fast path stay") {
  Host host(never_lowers());
  host.core.admit(kId, {.mode = Mode::enforce});
  host.step(0.1);
  host.core.set_pin(kId, {.cpu = Cores{0.01}, .memory = Bytes{kMiB}});
  CHECK(steps_for(host, 6000, Reason::pinned));
  REQUIRE(host.lowered_memory());
  CHECK(mib(host) > 200);  // need
  CHECK(cores(host) > 0.1);  // CPU use
  const double before = cores(host);
  for (int period = 0; period < 10; ++period) host.throttle();
  CHECK(steps_for(host, 1, Reason::throttled));
  CHECK(cores(host) > before);
}

TEST_CASE("a pinned memory limit stays above every earlier peak of the run") {
  Host host(never_lowers());
  host.core.admit(kId, {.mode = Mode::enforce});
  host.need(400 * kMiB);
  CHECK(steps_for(host, 10, Reason::pinned));
  host.need(200 * kMiB);
  host.core.set_pin(kId, {.memory = Bytes{kMiB}});
  CHECK(steps_for(host, 6000, Reason::pinned));
  REQUIRE(host.lowered_memory());
  CHECK(mib(host) >= 460);  // x 1.15, as for a peak in the last minute
  CHECK(host.core.find(kId)->recommendation.memory->value == kMiB);
}

TEST_CASE("a pin waits for samples of the phase, regardless of earlier runs") {
  Recommendation recommendation{.earlier_runs = 100};
  CHECK(recommendation.earlier_runs_for(Resource::cpu) == 100);
  const Recommendation pinned = recommendation.pinned({.cpu = Cores{0.5}}, 7, 0);
  CHECK(pinned.cpu_sample_count == 7);
  CHECK(pinned.earlier_runs_for(Resource::cpu) == 0);
  CHECK(pinned.earlier_runs_for(Resource::memory) == 100);
  CHECK(pinned.reason_for(Resource::memory) == recommendation.reason);
  CoreConfig config = never_lowers();
  config.safety.enough_samples = 500;
  Host host(config);
  host.core.admit(kId, {.mode = Mode::enforce});
  CHECK(steps_for(host, 600, Reason::pinned));
  host.core.set_pin(kId, {.cpu = Cores{0.5}});
  CHECK(steps_for(host, 499, Reason::pinned));
  CHECK(cores(host) == 1);
  CHECK(steps_for(host, 200, Reason::pinned));
  CHECK(cores(host) == doctest::Approx(0.5));
}

TEST_CASE("a pin changes nothing in mode observe or advise and ends with its container") {
  for (const Mode mode : {Mode::observe, Mode::advise}) {
    Host host(never_lowers());
    host.core.admit(kId, {.mode = mode});
    host.step(0.1);
    host.core.set_pin(kId, {.cpu = Cores{0.5}, .memory = Bytes{512 * kMiB}});
    bool advised = false;
    for (int i = 0; i < 600; ++i)
      for (const Decision& decision : host.step(0.1))
        advised = advised || decision.verdict == Verdict::advise_mode;
    CHECK_FALSE(host.lowered);
    CHECK(advised == (mode == Mode::advise));
    host.vanish();
    host.appear(container());
    host.step(0.1);
    CHECK_FALSE(host.core.find(kId)->pin.any());
  }
}

TEST_CASE("a limit raised above the original does not reduce the savings") {
  Host host;
  host.step(0.1);
  for (int raises = 0; raises < 3; ++raises) {
    Limits raised = host.limits();
    raised.cpu_max->quota->value *= 2;
    raised.memory_max->bytes->value *= 2;
    host.put(raised, false);
    host.step(0.1);
    CHECK(host.core.find(kId)->saved_core_seconds == 0);
    CHECK(host.core.find(kId)->saved_byte_seconds == 0);
  }
}

TEST_CASE("advise makes the same decisions and writes nothing") {
  Host host;
  host.core.admit(kId, {.mode = Mode::advise});
  bool advised = false;
  for (int tick = 0; tick < 200; ++tick)
    for (const Decision& decision : host.step(0.1))
      advised = advised || decision.verdict == Verdict::advise_mode;
  CHECK(advised);
  CHECK_FALSE(host.lowered);
}

TEST_CASE("the phase follows the demand and has a start time") {
  Host host;
  for (int tick = 0; tick < 10; ++tick) host.step(0.0);
  const Phase idle = host.core.find(kId)->phase;
  for (int tick = 0; tick < 10; ++tick) host.step(1.0);
  const ContainerView& view = *host.core.find(kId);
  CHECK(idle.known());
  CHECK(idle.index == 0);
  CHECK(view.phase.known());
  CHECK(view.phase.index == 1);
  CHECK(view.phase_since > MonotonicTime(seconds(108)));
  CHECK(view.seconds_in_phase.at(0) > 5);
}

TEST_CASE("a gap in the samples starts a new history") {
  Host host;
  for (int tick = 0; tick < 10; ++tick) host.step(0.0);
  REQUIRE(host.core.find(kId)->phase.known());
  host.step(0.0, seconds(60));
  CHECK(host.core.find(kId)->phase.state == PhaseState::not_enough_history);
  CHECK_FALSE(host.core.find(kId)->cpu_cores);
}

TEST_CASE("a removed container is forgotten, and a late result for it is ignored") {
  Host host;
  host.step(0.1);
  host.vanish();
  CHECK(host.core.find(kId) == nullptr);
  CHECK(host.core.containers().empty());
  const TickOutput output = host.core.step({.now = MonotonicTime(seconds(200)),
                                                .writes = {{1, WriteEnd::done, {}, {}}}});
  CHECK(output.applied.empty());
  CHECK(is_empty(host.core.learned(kId)));
}

TEST_CASE("nested savings count once, and only if the outer container has no limit") {
  constexpr CgroupId kInner{1, 3}, kBeside{1, 5}, kOuter{1, 9};
  for (const bool limited : {true, false}) {
    CAPTURE(limited);
    Core core = Core::create(Host::quick(), small_engine()).value();
    NodeSample tick;
    tick.host = {.cpu_cores = 4, .memory = Bytes{4 * kGiB}};
    for (const auto& [id, path] : {std::pair(kInner, "/a/b/c"), std::pair(kBeside, "/a-b"),
                                   std::pair(kOuter, "/a")}) {
      tick.appeared.push_back(container());
      tick.appeared.back().id = id;
      tick.appeared.back().path = path;
      tick.containers.emplace_back().id = id;
      if (id == kOuter && !limited) continue;
      tick.containers.back().limits.cpu_max = CpuMax{Microseconds{100'000}, Microseconds{100'000}};
      tick.containers.back().limits.memory_max = MemoryLimit{Bytes{kGiB}};
    }
    tick.time = MonotonicTime(seconds(1));
    (void)core.step(tick);
    tick.appeared.clear();
    for (Sample& sample : tick.containers) {
      if (!sample.limits.cpu_max) continue;
      sample.limits.cpu_max->quota->value /= 2;
      sample.limits.memory_max->bytes->value /= 2;
    }
    tick.time += seconds(1);
    (void)core.step(tick);
    const ContainerView &inner = *core.find(kInner), &outer = *core.find(kOuter);
    CHECK(inner.inside);
    CHECK_FALSE(outer.inside);
    CHECK_FALSE(core.find(kBeside)->inside);
    CHECK(inner.saved_core_seconds + outer.saved_core_seconds == 0.5);
    CHECK(inner.saved_byte_seconds + outer.saved_byte_seconds == 0.5 * kGiB);
    CHECK(outer.saved_core_seconds == (limited ? 0.5 : 0));
    CHECK(core.find(kBeside)->saved_core_seconds == 0.5);
    tick.vanished = {kOuter};
    tick.containers.pop_back();
    tick.time += seconds(1);
    (void)core.step(tick);
    CHECK_FALSE(core.find(kInner)->inside);
    CHECK_FALSE(core.find(kInner)->cpu_limit_around);
  }
}

TEST_CASE("a change of the wall clock shifts the OOM memory and marks it as changed") {
  Host host;
  SafetyMemory memory;
  memory.ooms.remember("t", {.measured_bytes = kGiB}, WallTime(seconds(1'900'000'000)));
  host.core.set_safety_memory(memory);
  host.step(0.1);
  CHECK(host.core.drain_safety_news());
  host.step(0.1);
  CHECK_FALSE(host.core.drain_safety_news());
  const WallTime later(seconds(1'700'000'000) + std::chrono::hours(120 * 24));
  CHECK(host.core.safety_memory().ooms.floor_bytes("t", later) == 0);
}

TEST_CASE("a limit above those of the ancestor cgroups saves nothing") {
  for (const double cores : {0.49, 0.1}) {
    Host host;
    host.grant({.cpu_cores = 0.5, .memory_bytes = 0.5 * kGiB});
    host.core.admit(kId, {.mode = Mode::enforce});
    for (int tick = 0; tick < 400; ++tick) host.step(cores);
    const ContainerView& view = *host.core.find(kId);
    CHECK(view.recommendation.cpu->value <= 0.5);
    const double now = host.limits().cpu_cores()->value;
    // Near the slice's quota, the container's own limit of 1 core leaves no room.
    CHECK((now == 1) == (cores > 0.4));
    CHECK((view.saved_core_seconds > 0) == (now < 0.5));
    const double before = view.saved_core_seconds;
    host.step(cores);
    CHECK(view.saved_core_seconds - before == doctest::Approx(std::max(0.0, 0.5 - now)));
  }
}

TEST_CASE("a throttled second counts against the limit in force during it, not the previous one") {
  CoreConfig config = Host::quick();
  config.policy = "phase";
  Host host(config);
  host.core.admit(kId, {.mode = Mode::enforce});
  const auto lowered = [&] { return host.limits().cpu_cores()->value < 0.5; };
  for (int tick = 0; tick < 200 && !lowered(); ++tick) host.step(0.1);
  REQUIRE(lowered());
  host.throttle();
  host.step(0.1);
  const auto recommendation = host.core.find(kId)->recommendation.cpu;
  REQUIRE(recommendation.has_value());
  CHECK(recommendation->value < 0.6);
}

TEST_CASE("a switch from observe to advise gives the same decisions, and no earlier lowering") {
  for (const int observed : {100, 700, 2500}) {
    CAPTURE(observed);
    CoreConfig config = Host::quick();
    config.policy = "phase";
    config.safety.enough_samples = 60;
    Host all_along(config), later(config);
    all_along.core.admit(kId, {.mode = Mode::advise});
    std::mt19937 random(3);
    int advised = 0;  // ticks after the switch until advise recommends a lowering
    for (int tick = 0; tick < observed + 600; ++tick) {
      if (tick == observed) later.core.set_mode(kId, Mode::advise);
      const bool idle = tick / 100 % 2 == 0;
      const double cores = (idle ? 0.05 : 0.4) + static_cast<double>(random() % 100) / 1000;
      const std::uint64_t bytes = (idle ? 100 : 300) * kMiB + random() % (20 * kMiB);
      for (Host* host : {&all_along, &later}) host->need(bytes);
      all_along.step(cores);
      for (const Decision& decision : later.step(cores))
        if (advised == 0 && decision.verdict == Verdict::advise_mode)
          advised = tick - observed + 1;
      const Recommendation& first = all_along.core.find(kId)->recommendation;
      const Recommendation& second = later.core.find(kId)->recommendation;
      REQUIRE(first.cpu.has_value() == second.cpu.has_value());
      REQUIRE(first.memory.has_value() == second.memory.has_value());
      if (first.cpu) REQUIRE(first.cpu->value == second.cpu->value);
      if (first.memory) REQUIRE(first.memory->value == second.memory->value);
      REQUIRE(first.cpu_sample_count == second.cpu_sample_count);
    }
    CHECK(advised >= 60);
    CHECK(learned_to_json(later.core.learned(kId)) ==
          learned_to_json(all_along.core.learned(kId)));
  }
}

TEST_CASE("decision ids continue after those of an earlier run") {
  CoreConfig config = Host::quick();
  config.first_decision_id = 1000;
  Host host(config);
  host.core.admit(kId, {.mode = Mode::enforce});
  std::uint64_t least = ~std::uint64_t{0};
  for (int tick = 0; tick < 200; ++tick)
    for (const Decision& decision : host.step(0.1)) least = std::min(least, decision.decision_id);
  CHECK(least == 1000);
}

TEST_CASE("the same ticks give the same decisions") {
  const auto run = [] {
    Host host;
    host.core.admit(kId, {.mode = Mode::enforce});
    std::mt19937 random(11);
    std::string trail;
    for (int tick = 0; tick < 600; ++tick) {
      const bool idle = (tick / 100) % 2 == 0;
      const double cores = idle ? 0.05 : 0.3 + static_cast<double>(random() % 40) / 100;
      for (const Decision& decision : host.step(cores)) {
        trail += std::to_string(decision.decision_id) + to_string(decision.verdict) +
                 to_string(decision.direction) + to_string(decision.reason);
        if (const auto now = decision.new_limits.cpu_cores()) trail += std::to_string(now->value);
      }
    }
    return trail;
  };
  const std::string first = run();
  CHECK_FALSE(first.empty());
  CHECK(first == run());
}

TEST_CASE("an original that returns is a reset only if systemd wrote it") {
  for (const bool by_systemd : {true, false}) {
    Host host;
    const Limits original = host.limits();
    host.core.admit(kId, {.mode = Mode::enforce});
    while (!host.lowered) host.step(0.1);
    for (int tick = 0; tick < 20; ++tick) host.step(0.1);  // longer than safety.silent_revert
    REQUIRE(host.limits() != original);
    host.put(original, by_systemd);
    host.lowered = false;
    for (int tick = 0; tick < 20; ++tick) host.step(0.1);
    CHECK(host.core.find(kId)->cpu_blocked_by ==
          (by_systemd ? Verdict::silently_reverted : Verdict::standing_down));
    CHECK_FALSE(host.lowered);
    for (int tick = 0; tick < 60; ++tick) host.step(0.1);
    CHECK(host.lowered == by_systemd);
  }
}

TEST_CASE("capacity that the host does not have is neither saved nor a limit") {
  Host host;
  Limits large = host.limits();
  large.cpu_max = CpuMax{Microseconds{800'000}, Microseconds{100'000}};
  large.memory_max = MemoryLimit{Bytes{64 * kGiB}};
  host.put(large, false);
  (void)host.step(0.1);
  Limits lower = large;
  lower.cpu_max->quota = Microseconds{150'000};
  lower.memory_max->bytes = Bytes{3 * kGiB};
  host.put(lower, false);
  (void)host.step(0.1);
  const ContainerView& view = *host.core.find(kId);
  CHECK(view.ancestor_limits == AncestorLimits{.cpu_cores = 2, .memory_bytes = 4.0 * kGiB});
  CHECK(view.saved_core_seconds <= 0.5 + 1e-9);
  CHECK(view.saved_byte_seconds <= static_cast<double>(kGiB));
}

TEST_CASE("CPU use is computed between reading times, even if a tick is read late") {
  Host host;
  for (const int late_ms : {0, 0, 600, 0, 900, 900, 0}) {
    host.read_late(std::chrono::milliseconds(late_ms));
    (void)host.step(1);
  }
  const ContainerView& view = *host.core.find(kId);
  CHECK(view.highest_cpu_cores.value() <= 2.0);  // the host has two cores
  host.read_late(std::chrono::milliseconds(500));
  (void)host.step(1.5);
  CHECK(view.cpu_cores.value() == doctest::Approx(1));
}
