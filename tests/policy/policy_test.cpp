#include "policy/policy.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "policy/learned_json.h"
#include "tests/policy/policy_run.h"

using namespace cgphase;

namespace {

// Environment with everything that any policy needs.
PolicyEnvironment all_known() {
  PolicyEnvironment around;
  around.job_seconds = 600;
  around.phase_statistics = std::make_shared<std::vector<PhaseStatistics>>(
      std::vector<PhaseStatistics>{{100, 50, 1, 1e12, 1}});
  FutureDemand future;
  for (int i = 1; i <= 100; ++i) {
    future.seconds.push_back(i);
    future.cpu_cores.push_back(100);
    future.memory_bytes.push_back(1e12);
  }
  around.future = std::make_shared<FutureDemand>(future);
  around.earlier_courses.emplace();
  return around;
}

struct KnowingRun {
  explicit KnowingRun(std::string_view name)
      : policy(make_policy(name, {}, all_known()).value()) {}
  void feed(double cores, int count = 1) {
    for (int i = 0; i < count; ++i) {
      seconds += 1;
      Observation observation;
      observation.time = MonotonicTime(std::chrono::seconds(seconds));
      observation.interval_seconds = 1;
      observation.cpu_cores = cores;
      observation.memory_need_bytes = cores * static_cast<double>(kGiB);
      observation.phase = {PhaseState::known, 0};
      policy->observe(observation);
    }
  }
  Recommendation allocation() const { return policy->allocate(four_cores_eight_gib(), kHost); }
  double cores() const { return allocation().cpu.value().value; }
  std::unique_ptr<Policy> policy;
  int seconds = 0;
};

}  // namespace

TEST_CASE("every policy can be created by name") {
  for (const auto name : policy_names()) {
    CAPTURE(name);
    CHECK(make_policy(name, {}, all_known()).has_value());
    CHECK(make_policy(PolicySpec{std::string(name), {}}, {}, all_known()).has_value());
  }
}

TEST_CASE("policies are listed in order of the knowledge that they use") {
  const auto names = policy_names();
  const std::vector<std::string_view> first(names.begin(), names.begin() + 16);
  CHECK(first == std::vector<std::string_view>{
                     "static", "oracle-max", "oracle-2sd", "adaptive-max", "adaptive-2sd", "vpa",
                     "vpa-tuned", "autopilot", "autopilot-tuned", "ai4dl-phase",
                     "ai4dl-phase-compat", "theta-scan", "k-segments", "ks-plus", "sliding",
                     "hold"});
  CHECK(names[16] == "phase");
}

TEST_CASE("the daemon accepts every policy that needs nothing which only replay has") {
  const auto only_replay = [](std::string_view name) {
    return name.starts_with("oracle-") || name.starts_with("ai4dl-") || name == "k-segments" ||
           name == "ks-plus";
  };
  for (const auto name : policy_names()) {
    CAPTURE(name);
    const Status good = check_live_policy(name);
    CHECK(good.has_value() == !only_replay(name));
    if (!good) CHECK(good.error().text.find("only cgphase replay") != std::string::npos);
  }
}

TEST_CASE("an unknown policy is refused with the nearest name") {
  const auto made = make_policy("slidng");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().kind == ErrorKind::invalid);
  CHECK(made.error().text.find("\"sliding\"") != std::string::npos);
}

TEST_CASE("an unknown policy with no similar name is refused with the list") {
  const auto made = make_policy("quarterly-budget");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().text.find("there are static, oracle-max, ") != std::string::npos);
}

TEST_CASE("static recommends the original limit") {
  KnowingRun run("static");
  CHECK(run.cores() == 4);
  CHECK(run.allocation().memory == Bytes{8 * kGiB});
}

TEST_CASE("static recommends the host's capacity if there is no limit") {
  const auto allocation = KnowingRun("static").policy->allocate(Limits{}, kHost);
  CHECK(allocation.cpu == Cores{16});
  CHECK(allocation.memory == Bytes{64 * kGiB});
}

TEST_CASE("policies without a prior have no opinion before ten samples") {
  for (const auto name : {"adaptive-max", "adaptive-2sd", "vpa", "vpa-tuned", "autopilot",
                          "autopilot-tuned", "sliding", "hold"}) {
    CAPTURE(name);
    KnowingRun run(name);
    run.feed(1, 9);
    CHECK_FALSE(run.allocation().cpu.has_value());
    run.feed(1);
    CHECK(run.allocation().cpu.has_value());
  }
}

TEST_CASE("sliding is mean plus two standard deviations") {
  KnowingRun run("sliding");
  for (int i = 0; i < 5; ++i) {  // mean 1.5, sd 0.5, ends with 1
    run.feed(2);
    run.feed(1);
  }
  CHECK(run.cores() == doctest::Approx(2.5));
}

TEST_CASE("sliding is never below 1.05 x the last sample") {
  KnowingRun run("sliding");
  run.feed(1, 59);
  run.feed(3);
  // mean 1.0333, sd 0.2560: the last sample is higher
  CHECK(run.cores() == doctest::Approx(3.15));
}

TEST_CASE("sliding forgets samples older than its window of 60") {
  KnowingRun run("sliding");
  run.feed(3, 10);
  run.feed(1, 59);
  CHECK(run.cores() > 1.2);
  run.feed(1);
  CHECK(run.cores() == doctest::Approx(1.05));
}

TEST_CASE("hold is 1.1 x the 95 % quantile") {
  KnowingRun run("hold");
  run.feed(1, 18);
  run.feed(2);
  run.feed(1);
  CHECK(run.cores() == doctest::Approx(2.2));
}

TEST_CASE("hold rises at once to 1.1 x the last sample") {
  KnowingRun run("hold");
  run.feed(1, 60);
  CHECK(run.cores() == doctest::Approx(1.1));
  run.feed(2);
  CHECK(run.cores() == doctest::Approx(2.2));
}

TEST_CASE("hold falls only ten samples after the last change") {
  KnowingRun run("hold");
  run.feed(1, 60);
  run.feed(2);       // up, one sample of sixty: the quantile stays 1
  run.feed(1, 9);
  CHECK(run.cores() == doctest::Approx(2.2));
  run.feed(1);
  CHECK(run.cores() == doctest::Approx(1.1));
}

TEST_CASE("hold does not fall by less than ten percent") {
  KnowingRun run("hold");
  run.feed(1.0, 60);
  run.feed(0.92, 60);
  CHECK(run.cores() == doctest::Approx(1.1));
  run.feed(0.89, 60);
  CHECK(run.cores() == doctest::Approx(0.979));
}

TEST_CASE("no policy recommends more than the original limit") {
  for (const auto name : policy_names()) {
    CAPTURE(name);
    KnowingRun run(name);
    run.feed(100, 60);
    const auto allocation = run.allocation();
    if (allocation.cpu) CHECK(*allocation.cpu == Cores{4});
    if (allocation.memory) CHECK(*allocation.memory == Bytes{8 * kGiB});
  }
}

TEST_CASE("only policies with histograms learn, and a merged run is the same run") {
  for (const auto name : policy_names()) {
    CAPTURE(name);
    KnowingRun run(name);
    run.feed(1, 60);
    const LearnedState learned = run.policy->learned();
    const bool learns = name.starts_with("vpa") || name.starts_with("autopilot") ||
                        name.starts_with("p");  // phase, proactive
    CHECK(is_empty(learned) == !learns);
    CHECK(learned_to_json(merge_learned({}, learned)) == learned_to_json(learned));
  }
}

TEST_CASE("every policy can be created with what any policy learned") {
  for (const auto learner : policy_names()) {
    CAPTURE(learner);
    KnowingRun run(learner);
    run.feed(1, 60);
    const LearnedState learned = merge_learned({}, run.policy->learned());
    for (const auto name : policy_names()) {
      CAPTURE(name);
      CHECK(make_policy(name, learned, all_known()).has_value());
    }
  }
}

TEST_CASE("a run of another kind of policy replaces what was learned, and an empty one does not") {
  KnowingRun phases("phase"), usage("vpa");
  phases.feed(1, 60);
  usage.feed(1, 60);
  const LearnedState earlier = merge_learned({}, phases.policy->learned());
  CHECK(learned_to_json(merge_learned(earlier, {})) == learned_to_json(earlier));
  const LearnedState other = usage.policy->learned();
  CHECK(learned_to_json(merge_learned(earlier, other)) == learned_to_json(other));
}

TEST_CASE("the same samples give the same recommendations") {
  for (const auto name : policy_names()) {
    CAPTURE(name);
    KnowingRun one(name), other(name);
    for (int i = 0; i < 400; ++i) {
      const double cores = 1 + 0.5 * ((i * 37) % 11) / 11.0;
      one.feed(cores);
      other.feed(cores);
      const Recommendation left = one.allocation(), right = other.allocation();
      REQUIRE(left.cpu == right.cpu);
      REQUIRE(left.memory == right.memory);
    }
    CHECK(learned_to_json(one.policy->learned()) == learned_to_json(other.policy->learned()));
  }
}

TEST_CASE("a value that is not a number is not a sample") {
  for (const auto name : policy_names()) {
    CAPTURE(name);
    KnowingRun run(name), strange(name);
    run.feed(1, 40);
    strange.feed(1, 20);
    strange.feed(std::numeric_limits<double>::quiet_NaN());
    strange.seconds -= 1;
    strange.feed(1, 20);
    CHECK(run.allocation().cpu == strange.allocation().cpu);
  }
}
