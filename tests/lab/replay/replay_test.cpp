#include "lab/replay/replay.h"

#include <doctest/doctest.h>

#include <chrono>
#include <utility>

#include "core/core.h"
#include "model/ai4dl.h"
#include "policy/policy.h"
#include "tests/model/synthetic_trace.h"

using namespace cgphase;
using doctest::Approx;
using std::chrono::seconds;

namespace {

std::shared_ptr<const PhaseEngine> default_engine() {
  static const auto engine =
      PhaseEngine::create(
          load_model(CGPHASE_SOURCE_DIR "/model/default_model.json").value()).value();
  return engine;
}

// A run of `service` that starts at `begin`.
Execution run_of(std::string service, seconds begin, std::uint64_t seed = 1, int length = 360) {
  Execution execution = std::move(synthetic_trace(seed, length).executions.front());
  execution.service = std::move(service);
  for (TraceRow& row : execution.rows) {
    row.wall_time = WallTime(begin + row.time.time_since_epoch());
    // Thus the limit can be raised in time for every jump.
    row.sample.memory.anon_bytes = *row.sample.memory.anon_bytes / 8;
  }
  return execution;
}

ReplayInput one_run() {
  ReplayInput input;
  input.executions.push_back(run_of("job", seconds(0)));
  input.engine = default_engine();
  return input;
}

constexpr ReplaySettings kOpen{.window_seconds = 60};
constexpr ReplaySettings kClosed{.loop = {.enabled = true}, .window_seconds = 60};

Contender named(std::string name, double margin = 0) {
  return {.policy = {.name = std::move(name), .parameters = {}}, .margin = margin};
}

ContenderResult played(const ReplayInput& input, const ReplaySettings& settings,
                       const Contender& contender) {
  auto result = replay(input, settings, contender, true);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().text));
  return std::move(*result);
}

double limit_sum(const ExecutionResult& result, std::size_t rows) {
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i) sum += result.limits.memory_bytes[i];
  return sum;
}

}  // namespace

TEST_CASE("savings are relative to the user's limit") {
  const auto result = played(one_run(), kClosed, named("static"));
  REQUIRE(result.executions.size() == 1);
  for (const ReplaySums& sums : {result.executions[0].cpu, result.executions[0].memory}) {
    CHECK(sums.allocated == sums.original);
    CHECK(*find_measure("gap_to_oracle")->of(sums) == Approx(1));
    CHECK(sums.samples == 359);
    CHECK(sums.seconds == 359);
    CHECK(sums.windows == 6);
    CHECK(sums.writes_up + sums.writes_down + sums.would_oom == 0);
  }
  CHECK(result.executions[0].memory.windows_clean == 6);
  CHECK(result.executions[0].cpu.windows_clean == 4);  // the recording exceeds its own limit
}

TEST_CASE("replay puts the recommendation of the daemon's pipeline in force") {
  for (const char* policy : {"hold", "sliding", "phase"}) {
    CAPTURE(policy);
    const ReplayInput input = one_run();
    const Execution& execution = input.executions[0];
    const auto result = played(input, kOpen, named(policy));
    CoreConfig config;
    config.policy = policy;
    config.cpu_risk_factor = 1;  // a bare policy has no safety rules
    config.safety.at_risk_ratio = ClosedLoop{}.guard_threshold;
    auto core = Core::create(config, default_engine()).value();
    int said = 0;
    for (std::size_t i = 0; i < execution.rows.size(); ++i) {
      NodeSample tick{.time = execution.rows[i].time, .host = execution.host};
      if (i == 0) tick.appeared.push_back({.id = execution.rows[0].sample.id});
      tick.containers.push_back(execution.rows[i].sample);
      tick.containers[0].limits = execution.original;
      core.step(tick);
      const Recommendation& recommendation = core.containers().at(0)->recommendation;
      const auto& limits = result.executions[0].limits;
      // Limits are rounded up to a microsecond of quota and a page.
      if (recommendation.cpu) {
        CHECK(limits.cpu_cores[i] >= recommendation.cpu->value);
        CHECK(limits.cpu_cores[i] < recommendation.cpu->value + 1.1e-5);
      }
      if (recommendation.memory) {
        const auto recommended = static_cast<double>(recommendation.memory->value);
        CHECK(limits.memory_bytes[i] >= recommended);
        CHECK(limits.memory_bytes[i] < recommended + kPageBytes);
      }
      said += recommendation.cpu && recommendation.memory ? 1 : 0;
    }
    CHECK(said > 100);
  }
}

TEST_CASE("the same replay gives the same bits, another policy different ones") {
  const ReplayInput input = one_run();
  const auto first = played(input, kClosed, named("hold"));
  CHECK(first.executions[0].crc == played(input, kClosed, named("hold")).executions[0].crc);
  CHECK(first.executions[0].crc != played(input, kClosed, named("sliding")).executions[0].crc);
}

TEST_CASE("a margin is added to the recommendation, up to the limit") {
  const ReplayInput input = one_run();
  const auto bare = played(input, kOpen, named("hold"));
  const auto wide = played(input, kOpen, named("hold", 0.1));
  for (std::size_t i = 20; i < 100; ++i) {
    const double wanted = 1.1 * bare.executions[0].limits.memory_bytes[i];
    CHECK(wide.executions[0].limits.memory_bytes[i] ==
          Approx(std::min(wanted, 1.0 * kGiB)).epsilon(1e-4));
  }
}

TEST_CASE("limits change only on the grid of decisions") {
  ReplaySettings settings = kOpen;
  settings.step_seconds = 10;
  const auto result = played(one_run(), settings, named("sliding"));
  const auto& memory = result.executions[0].limits.memory_bytes;
  int changes = 0;
  for (std::size_t i = 1; i < memory.size(); ++i) {
    if (memory[i] == memory[i - 1]) continue;
    CHECK(i % 10 == 0);
    changes += 1;
  }
  CHECK(changes > 5);
}

TEST_CASE("the guard raises if the policy is too low, and the raise is counted") {
  // A job with bursts that `hold` with a long memory does not know.
  ReplayInput input = one_run();
  auto& rows = input.executions[0].rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].sample.cpu.usage_usec = i < 200 ? i * 100'000 : 20'000'000 + (i - 200) * 1'900'000;
    rows[i].sample.memory.anon_bytes = (i < 200 ? 100 : 300) * kMiB;
  }
  const auto open = played(input, kOpen, named("hold")).executions[0];
  const auto closed = played(input, kClosed, named("hold")).executions[0];
  CHECK(open.cpu.guard_raises == 0);
  CHECK(open.cpu.samples_over == 1);
  CHECK(closed.cpu.samples_over == 2);  // of the first burst it saw only what the quota let through
  CHECK(closed.cpu.guard_raises > 3);
  CHECK(closed.cpu.backlog_core_seconds > 0);
  CHECK(open.cpu.backlog_core_seconds == 0);
  CHECK(closed.memory.guard_raises == 1);
  CHECK(closed.memory.would_oom == 1);  // 200 MiB in one second from a limit of 110 MiB
  CHECK(closed.memory.windows_clean == closed.memory.windows - 1);
}

TEST_CASE("learned state of a run serves runs that begin after its end") {
  ReplayInput input = one_run();
  input.executions.push_back(run_of("job", seconds(400), 2));
  input.executions.push_back(run_of("job", seconds(100), 3));
  input.executions.push_back(run_of("other", seconds(400), 2));
  const auto runs = played(input, kClosed, named("phase")).executions;
  constexpr std::size_t kStart = kWarmUpSamples;  // of a policy without learned state
  CHECK(limit_sum(runs[1], kStart) < 0.9 * kStart * kGiB);
  // without learned state, like the first one
  CHECK(limit_sum(runs[1], kStart) < limit_sum(runs[3], kStart));
  CHECK(runs[1].crc != runs[3].crc);
}

TEST_CASE("training runs serve all and are not scored") {
  ReplayInput input = one_run();
  input.training.push_back(run_of("job", seconds(9000), 2));
  const auto taught = played(input, kClosed, named("phase"));
  REQUIRE(taught.executions.size() == 1);
  const auto untaught = played(one_run(), kClosed, named("phase"));
  CHECK(limit_sum(taught.executions[0], kWarmUpSamples) <
        limit_sum(untaught.executions[0], kWarmUpSamples));
}

TEST_CASE("k-segments and ks-plus allocate over time what an earlier run needed") {
  ReplayInput input = one_run();
  input.executions.push_back(run_of("job", seconds(1000)));
  for (Execution& execution : input.executions)
    for (std::size_t i = 0; i < execution.rows.size(); ++i)
      execution.rows[i].sample.memory.anon_bytes = (i < 200 ? 100 : 300) * kMiB;
  const auto need = [&](std::size_t row) {
    return static_cast<double>(memory_need(input.executions[0].rows[row].sample)->value);
  };
  const auto equal = played(input, kOpen, named("k-segments")).executions;
  CHECK(limit_sum(equal[0], 360) == 360.0 * kGiB);  // no earlier run
  const auto& of_equal = equal[1].limits.memory_bytes;  // a new part each 89.75 s
  CHECK(of_equal[178] == Approx(need(0)).epsilon(1e-4));
  CHECK(of_equal[179] == Approx(need(200)).epsilon(1e-4));
  CHECK(equal[1].memory.samples_over == 0);
  CHECK(equal[1].cpu.allocated == equal[1].cpu.original);
  const auto rising = played(input, kOpen, named("ks-plus")).executions;
  const auto& of_rising = rising[1].limits.memory_bytes;  // the step of second 200 at second 170
  CHECK(of_rising[165] == Approx(1.1 * need(0)).epsilon(1e-4));
  CHECK(of_rising[175] == Approx(1.1 * need(200)).epsilon(1e-4));
  CHECK(rising[1].memory.wastage < rising[0].memory.wastage);
}

TEST_CASE("safety rules keep limits between their floor and the original") {
  ReplayInput input;
  for (int i = 0; i < 3; ++i)
    input.executions.push_back(run_of("job", seconds(4000 * i), 5, 3600));
  input.engine = default_engine();
  ReplaySettings settings = kClosed;
  settings.safety = true;
  const ContenderResult weighed = played(input, settings, named("phase"));
  for (const ExecutionResult& execution : weighed.executions)
    CHECK(execution.cpu.writes_down == 0);  // weights only, as the daemon
  settings.cpu_lever = CpuLever::both;
  const auto railed = played(input, settings, named("phase")).executions;
  const auto bare = played(input, kClosed, named("phase")).executions;
  for (std::size_t i = 0; i < railed.size(); ++i) {
    CHECK(railed[i].cpu.writes_down + railed[i].memory.writes_down > 0);
    CHECK(railed[i].memory.would_oom == 0);
    // Within an hour: a quota is lowered once a minute, memory once in ten seconds.
    CHECK(railed[i].cpu.writes_down <= 60);
    CHECK(railed[i].memory.writes_down <= 360);
    CHECK(railed[i].cpu.allocated > bare[i].cpu.allocated);
    CHECK(railed[i].memory.allocated > bare[i].memory.allocated);
    CHECK(railed[i].memory.allocated < railed[i].memory.original);
  }
}

// The limit is memory.high, which kills nothing, so there is no quarantine of a day.
TEST_CASE("after need has passed a lowered limit, the rules lower it again within an hour") {
  ReplayInput input;
  Execution& run = input.executions.emplace_back(run_of("job", seconds(0), 5, 7200));
  input.engine = default_engine();
  for (TraceRow& row : run.rows) row.sample.memory.anon_bytes = 40 * kMiB;
  const auto original = static_cast<double>(run.original.memory_bytes()->value);
  for (std::size_t i = 3600; i < 3605; ++i)
    run.rows[i].sample.memory.anon_bytes = 200 * kMiB;
  ReplaySettings settings = kClosed;
  settings.safety = true;
  const ExecutionResult result = played(input, settings, named("phase")).executions.at(0);
  CHECK(result.memory.would_oom == 1);
  CHECK(result.limits.memory_bytes.at(3599) < 0.5 * original);
  CHECK(result.limits.memory_bytes.at(3604) == original);
  CHECK(result.limits.memory_bytes.at(7199) < original);
}

TEST_CASE("AI4DL's policies report what they need") {
  const auto refused = replay(one_run(), kOpen, named("ai4dl-phase-compat"), false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(refused.error().text.find("--compat-model") != std::string::npos);
}

TEST_CASE("a resource that AI4DL's training did not measure keeps its limit") {
  ReplayInput input = one_run();
  Execution& taught = input.training.emplace_back(run_of("job", seconds(9000), 2));
  for (TraceRow& row : taught.rows) row.sample.memory.anon_bytes.reset();
  const auto result = played(input, kOpen, named("ai4dl-phase"));
  const ReplaySums &memory = result.executions[0].memory, &cpu = result.executions[0].cpu;
  CHECK(memory.allocated == memory.original);
  CHECK(cpu.allocated < cpu.original);
}

TEST_CASE("an unknown policy is refused") {
  CHECK_FALSE(replay(one_run(), kOpen, named("holdd"), false));
}

TEST_CASE("executions without rows, and without measurements, have no sums") {
  ReplayInput input = one_run();
  input.executions.push_back({});
  Execution& blind = input.executions.emplace_back(run_of("blind", seconds(0)));
  for (TraceRow& row : blind.rows) row.sample.memory.anon_bytes.reset();
  const auto result = played(input, kClosed, named("hold"));
  CHECK(result.executions[1].cpu.seconds == 0);
  CHECK(result.executions[2].cpu.seconds == 359);
  CHECK(result.executions[2].memory.seconds == 0);
}
