#include "policy/phase/phase_policy.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "policy/learned_json.h"
#include "tests/policy/policy_run.h"

using namespace cgphase;

namespace {

constexpr double kGib = static_cast<double>(kGiB);

Limits eight_cores_sixteen_gib() {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{800'000}, Microseconds{100'000}};
  limits.memory_max = MemoryLimit{Bytes{16 * kGiB}};
  return limits;
}

struct Run {
  explicit Run(const LearnedState& prior = {}, double risk = 0.001,
               PhasePolicy::Foresight foresight = PhasePolicy::Foresight::phase)
      : policy(prior, at_risk(risk), foresight) {}
  static PolicyEnvironment at_risk(double risk) {
    PolicyEnvironment around;
    around.risk = risk;
    return around;
  }
  void feed(int phase, double cores, double gib, int count) {
    for (int i = 0; i < count; ++i) {
      Observation observation = at(phase);
      observation.cpu_cores = cores;
      observation.memory_need_bytes = gib * kGib;
      policy.observe(observation);
    }
  }
  Observation at(int phase) {
    Observation observation;
    observation.interval_seconds = seconds == 0 ? 0 : 1;
    seconds += 1;
    observation.time = MonotonicTime(std::chrono::seconds(seconds));
    observation.phase.state = phase < 0 ? PhaseState::unknown : PhaseState::known;
    observation.phase.index = phase;
    return observation;
  }
  Recommendation allocation() const { return policy.allocate(eight_cores_sixteen_gib(), kHost); }
  double cores() const { return allocation().cpu.value().value; }
  double gib() const { return static_cast<double>(allocation().memory.value().value) / kGib; }
  LearnedPhases learned() const { return std::get<LearnedPhases>(policy.learned()); }
  PhasePolicy policy;
  int seconds = 0;
};

// `value`, plus room for the fast path, and at most a quarter more in total.
bool is_need(double allocation, double value) {
  return allocation >= value * 1.05 && allocation <= value * 1.25;
}

// Idle for 200 s, then working for 100 s, `rounds` times.
void alternate(Run& run, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    run.feed(0, 0.5, 1, 200);
    run.feed(1, 5, 8, 100);
  }
}

}  // namespace

TEST_CASE("a phase gets its demand and the room that the risk requires") {
  Run run;
  run.feed(0, 2, 4, 60);
  CHECK(run.cores() <= 8);
  run.feed(0, 2, 4, 40);
  // Memory was constant for a whole window, so no more is needed. CPU demand may jump.
  CHECK(is_need(run.gib(), 4));
  run.feed(0, 2, 4, 160);
  CHECK(is_need(run.cores(), 2));
  CHECK(run.allocation().cpu_sample_count == 260);
}

TEST_CASE("an unknown phase gets the need of the run, so nothing is lowered below it") {
  Run run;
  run.feed(0, 2, 4, 260);
  const double cores = run.cores(), gib = run.gib();
  run.feed(-1, 2, 4, 5);
  CHECK(run.cores() == cores);
  CHECK(run.gib() == gib);
}

TEST_CASE("nine samples give no opinion, ten do") {
  Run run;
  run.feed(0, 2, 4, 9);
  CHECK_FALSE(run.allocation().cpu.has_value());
  CHECK_FALSE(run.allocation().memory.has_value());
  run.feed(0, 2, 4, 1);
  CHECK(run.allocation().cpu.has_value());
  CHECK(run.allocation().memory.has_value());
}

TEST_CASE("a quiet phase is lowered once it is known, and the limit rises before the busy one") {
  Run run;
  alternate(run, 3);
  run.feed(0, 0.5, 1, 40);
  CHECK(run.cores() < 1);
  run.feed(0, 0.5, 1, 155);
  CHECK(is_need(run.cores(), 5));
  CHECK(run.allocation().reason == Reason::phase_changed);
}

TEST_CASE("a quiet phase includes room for a memory jump within a second") {
  Run run;
  alternate(run, 3);  // 7 GiB within a second: the fast path is too slow below twice that
  run.feed(0, 0.5, 1, 100);
  CHECK(run.gib() >= 14);
}

TEST_CASE("a phase that never ended keeps memory for every earlier need") {
  Run run;
  run.feed(1, 5, 8, 60);
  run.feed(0, 0.5, 1, 60);
  CHECK(is_need(run.gib(), 8));
  run.feed(0, 0.5, 1, 2000);
  CHECK(is_need(run.gib(), 8));
}

TEST_CASE("while a phase has never ended, memory from before the daemon's start is kept") {
  for (const int phase : {0, -1}) {
    CAPTURE(phase);
    Run fresh, resumed;
    fresh.feed(phase, 1, 1, 200);
    REQUIRE(fresh.gib() < 2);
    resumed.policy.resume(6 * kGib);
    resumed.feed(phase, 1, 1, 200);
    CHECK(resumed.gib() >= 6);
    CHECK(resumed.learned().runs.at(0).memory_bytes == 6 * kGib);
  }
}

TEST_CASE("an unknown phase keeps its memory while it lasts and where it may follow") {
  Run run;
  for (int round = 0; round < 3; ++round) {
    run.feed(0, 0.5, 1, 100);
    run.feed(-1, 3, 6, 5);
  }
  run.feed(0, 0.5, 1, 80);
  CHECK(run.gib() >= 6);
  run.feed(-1, 0.5, 1, 2000);
  CHECK(run.gib() >= 6);
}

TEST_CASE("once the end of a long phase is unlikely, the need of other phases is not kept") {
  Run run({}, 0.01);
  run.feed(1, 5, 8, 60);
  run.feed(0, 0.5, 1, 5900);  // 60 s / (5900 s + 60 s) is above 1 %
  CHECK(run.gib() >= 8);
  run.feed(0, 0.5, 1, 1000);
  CHECK(is_need(run.gib(), 1));
}

TEST_CASE("a first memory jump in the first minute of a first run fits") {
  Run run;
  run.feed(0, 1, 2, 12);  // constant
  CHECK(run.gib() > 4);
}

TEST_CASE("memory that rarely follows a moment is not kept for it") {
  Run run;
  for (int round = 0; round < 40; ++round) {
    run.feed(0, 0.5, 1, 100);
    run.feed(1, 0.5, round == 3 ? 1.5 : 1, 5);
  }
  run.feed(0, 0.5, 1, 98);
  CHECK(is_need(run.gib(), 1));
}

TEST_CASE("a checkpoint's memory spike is provided for in advance") {
  for (const auto foresight : {PhasePolicy::Foresight::phase, PhasePolicy::Foresight::proactive}) {
    Run run({}, 0.001, foresight);
    for (int round = 0; round < 12; ++round) {
      run.feed(0, 4, 4, 1);
      run.feed(0, 4, 4, 57);
      if (round > 0) CHECK(run.gib() >= 6);
      for (const double gib : {4.4, 4.8, 5.2, 5.6, 6.0, 6.0}) {
        run.feed(1, 0.5, gib, 1);
        if (round > 0) CHECK(run.gib() >= gib);
      }
    }
    CHECK(run.gib() < 8);
  }
}

TEST_CASE("a memory ramp never reaches its limit") {
  Run run;
  run.feed(0, 1, 1, 30);
  for (int i = 0; i < 200; ++i) {
    const double gib = 1 + 0.02 * (i + 1);
    if (i > 1) CHECK(run.gib() > gib);
    run.feed(2, 1, gib, 1);
  }
}

TEST_CASE("a smaller risk never allocates less") {
  double before_cores = 0, before_gib = 0;
  for (const double risk : {0.1, 0.01, 0.001, 0.0001}) {
    Run run({}, risk);
    double cores = 0, gib = 0;
    for (int i = 0; i < 600; ++i) {
      const int phase = i / 100 % 2;
      run.feed(phase, 1 + phase + 0.1 * (i * 7 % 11), 2 + phase + 0.01 * (i * 5 % 7), 1);
      if (i < 9) continue;
      cores += run.cores();
      gib += run.gib();
    }
    CHECK(cores >= before_cores);
    CHECK(gib >= before_gib);
    before_cores = cores;
    before_gib = gib;
  }
}

TEST_CASE("a throttled sample counts as the limit that throttled it") {
  Run run, free;
  for (int i = 0; i < 300; ++i) {
    Observation observation = run.at(0);
    observation.cpu_cores = 1;
    observation.cpu_censored = true;
    observation.cpu_limit_cores = 2;
    run.policy.observe(observation);
  }
  CHECK(is_need(run.cores(), 2));
}

TEST_CASE("an invalid risk is replaced by the minimum or maximum") {
  for (const double risk : {-1.0, 0.0, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
    Run run({}, risk);
    run.feed(0, 2, 4, 60);
    CHECK(run.cores() >= 2);
    CHECK(run.cores() <= 8);
  }
}

TEST_CASE("missing values of one resource do not affect the other") {
  Run run;
  for (int i = 0; i < 60; ++i) {
    Observation observation = run.at(0);
    observation.cpu_cores = 1;
    run.policy.observe(observation);
  }
  CHECK(run.allocation().cpu.has_value());
  CHECK_FALSE(run.allocation().memory.has_value());
}

TEST_CASE("a visit that a gap interrupts is not a dwell time") {
  Run run;
  alternate(run, 2);
  Run cut;
  alternate(cut, 2);
  for (int i = 0; i < 20; ++i) {  // twenty short pieces of phase 0, each after a gap
    Observation observation = cut.at(0);
    observation.interval_seconds = 0;
    cut.policy.observe(observation);
  }
  const auto dwell = [](const Run& from) {
    return from.learned().records.at(0).dwell_seconds.count();
  };
  CHECK(dwell(cut) == dwell(run));
}

TEST_CASE("with an earlier run there is an opinion from the first sample on") {
  Run earlier;
  alternate(earlier, 2);
  const auto prior = merge_learned({}, earlier.policy.learned());
  Run run(prior);
  run.feed(1, 0.1, 0.1, 1);
  CHECK(is_need(run.cores(), 5));
  CHECK(run.gib() >= 8);
  CHECK(run.allocation().earlier_runs == 1);
  CHECK(run.allocation().cpu_sample_count == 1);
}

TEST_CASE("earlier runs are counted one by one") {
  LearnedState prior;
  for (int i = 0; i < 3; ++i) {
    Run run;
    alternate(run, 1);
    prior = merge_learned(prior, run.policy.learned());
  }
  Run run(prior);
  run.feed(0, 0.5, 1, 1);
  CHECK(run.allocation().earlier_runs == 3);
}

TEST_CASE("a run does not pass on its prior a second time") {
  Run earlier;
  alternate(earlier, 2);
  Run run(merge_learned({}, earlier.policy.learned()));
  CHECK(run.learned().records.empty());
}

TEST_CASE("the peak of an earlier run is forgotten after twenty runs without it") {
  Run high;
  for (int i = 0; i < 20; ++i) high.feed(0, 1, 8 - 0.35 * i, 1);
  high.feed(0, 1, 1, 59);
  LearnedState prior = merge_learned({}, high.policy.learned());
  const auto allocation = [&] {
    Run run(prior);
    run.feed(0, 1, 1, 1);
    return run.gib();
  };
  CHECK(is_need(allocation(), 8));
  for (int i = 0; i < 20; ++i) {
    Run low;
    low.feed(0, 1, 1, 60);
    prior = merge_learned(prior, low.policy.learned());
  }
  CHECK(is_need(allocation(), 1));
}

TEST_CASE("a prior that is out of bounds is ignored, and a run like it changes nothing") {
  Run good;
  alternate(good, 1);
  const LearnedPhases learned = good.learned();
  const auto ignored = [&](const LearnedPhases& prior) {
    Run run(prior);
    run.feed(0, 0.5, 1, 1);
    const LearnedState merged = merge_learned(learned, prior);
    return !run.allocation().cpu.has_value() &&
           learned_to_json(merged) == learned_to_json(learned);
  };
  CHECK_FALSE(ignored(learned));
  LearnedPhases bad = learned;
  bad.records[kPhaseSlots] = bad.records[0];
  CHECK(ignored(bad));
  bad = learned;
  bad.records.at(0).runs = -1;
  CHECK(ignored(bad));
  bad = learned;
  bad.records.at(0).next[1] = -1;
  CHECK(ignored(bad));
  bad = learned;
  bad.runs.at(0).samples = -5;
  CHECK(ignored(bad));
  bad = learned;
  bad.peaks[{0, 0, 99}] = {};
  CHECK(ignored(bad));
}

TEST_CASE("the same run learns the same bytes") {
  Run one, two;
  alternate(one, 2);
  alternate(two, 2);
  CHECK(learned_to_json(one.policy.learned()).dump() ==
        learned_to_json(two.policy.learned()).dump());
}

TEST_CASE("visit probabilities follow the recorded successors") {
  PhaseRecords records;
  records[0].next[1] = 3;
  records[0].next[2] = 1;
  for (int i = 0; i < 4; ++i) records[0].dwell_seconds.add(100, 1, 0);
  const auto early = visit_probabilities(records, 0, 10, 20);
  CHECK(early[0] == 1);
  CHECK(early[1] == 0);
  const auto late = visit_probabilities(records, 0, 95, 20);
  CHECK(late[1] == doctest::Approx(0.75));
  CHECK(late[2] == doctest::Approx(0.25));
}

TEST_CASE("a visit longer than any earlier one may end at any moment") {
  PhaseRecords records;
  records[0].next[1] = 1;
  records[0].dwell_seconds.add(100, 1, 0);
  CHECK(visit_probabilities(records, 0, 500, 1)[1] == 1);
}

TEST_CASE("the remaining time is the median of visits that lasted as long") {
  PhaseRecord record;
  CHECK_FALSE(usual_rest(record, 0).has_value());
  for (const double seconds : {10, 10, 10, 10, 10, 10, 200, 200, 200, 1000})
    record.dwell_seconds.add(seconds, 1, 0);
  CHECK(usual_rest(record, 0).value() == doctest::Approx(10).epsilon(0.06));
  CHECK(usual_rest(record, 50).value() == doctest::Approx(150).epsilon(0.08));
  CHECK(usual_rest(record, 500).value() == doctest::Approx(500).epsilon(0.11));
  CHECK_FALSE(usual_rest(record, 2000).has_value());
}

TEST_CASE("a forecast lists the phases that may come, with probability and time") {
  Run run;
  CHECK_FALSE(run.policy.forecast(std::chrono::seconds(60)).has_value());
  alternate(run, 3);
  run.feed(0, 0.5, 1, 150);
  const auto near = run.policy.forecast(std::chrono::seconds(1));
  REQUIRE(near.has_value());
  CHECK(near->next.empty());
  const auto far = run.policy.forecast(std::chrono::seconds(100));
  REQUIRE(far.has_value());
  REQUIRE(far->next.size() == 1);
  CHECK(far->next[0].phase == 1);
  CHECK(far->next[0].probability == doctest::Approx(1));
  CHECK(far->next[0].in >= std::chrono::seconds(45));
  CHECK(far->next[0].in <= std::chrono::seconds(65));
  CHECK(far->next[0].cpu_peak->value >= 5);
  CHECK(far->next[0].cpu_peak->value <= far->cpu_peak->value);
  CHECK(static_cast<double>(far->next[0].memory_peak->value) >= 8 * kGib);
  CHECK(far->cpu_peak->value >= 5);
  CHECK(static_cast<double>(far->memory_peak->value) >= 8 * kGib);
  CHECK(far->risk == 0.001);
}

TEST_CASE("a forecast lists the directly following phase with the need from then on") {
  Run run;  // idle, load, work: 200 s, 50 s, 100 s
  for (int round = 0; round < 4; ++round) {
    run.feed(0, 0.5, 1, 200);
    run.feed(1, 2, 3, 50);
    run.feed(2, 5, 8, 100);
  }
  run.feed(0, 0.5, 1, 190);
  const auto next = [&](int seconds) {
    const auto forecast = run.policy.forecast(std::chrono::seconds(seconds));
    REQUIRE(forecast.has_value());
    REQUIRE(forecast->next.size() == 1);  // although the work is equally certain within 300 s
    CHECK(forecast->next[0].phase == 1);
    CHECK(forecast->next[0].probability == doctest::Approx(1));
    return forecast->next[0];
  };
  CHECK(next(30).cpu_peak->value == doctest::Approx(2).epsilon(0.06));
  CHECK(static_cast<double>(next(30).memory_peak->value) ==
        doctest::Approx(3 * kGib).epsilon(0.06));
  CHECK(next(300).cpu_peak->value == doctest::Approx(5).epsilon(0.06));
  CHECK(static_cast<double>(next(300).memory_peak->value) ==
        doctest::Approx(8 * kGib).epsilon(0.06));
}
