// Policies: the first line is a policy as in the configuration, the rest is what earlier runs
// learned. A refusal is one printable line. An accepted text is the same when it is written and
// read again. With any statistics, a policy recommends only possible limits.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "policy/learned_json.h"
#include "policy/policy.h"

using namespace cgphase;

namespace {

constexpr HostCapacity kHost{16, Bytes{64 * kGiB}};

PolicyEnvironment all_known() {
  PolicyEnvironment around;
  around.phase_statistics = std::make_shared<std::vector<PhaseStatistics>>(
      std::vector<PhaseStatistics>{{10, 1, 1, 1e9, 1e8}});
  around.future = std::make_shared<FutureDemand>(FutureDemand{{5, 9}, {1, 2}, {1e9, 2e9}});
  return around;
}

void check_forecast(const Forecast& forecast) {
  for (const Forecast::Next& next : forecast.next) {
    CHECK_INVARIANT(next.probability > 0 && next.probability <= 1);
    CHECK_INVARIANT(next.in.count() >= 0 && next.in < std::chrono::hours(1'000'000'000));
    CHECK_INVARIANT(!next.cpu_peak || (next.cpu_peak->value >= 0 && next.cpu_peak->value < 1e12));
    // The next phase is within the forecast over all phases.
    CHECK_INVARIANT(!next.cpu_peak || !forecast.cpu_peak ||
                    next.cpu_peak->value <= forecast.cpu_peak->value);
    CHECK_INVARIANT(!next.memory_peak || !forecast.memory_peak ||
                    *next.memory_peak <= *forecast.memory_peak);
  }
}

// Runs it for half a minute.
void run(const PolicySpec& spec, const LearnedState& prior) {
  auto made = make_policy(spec, prior, all_known());
  CHECK_INVARIANT(made.has_value());
  Policy& policy = **made;
  for (int second = 1; second <= 30; ++second) {
    Observation observation;
    observation.time = MonotonicTime(std::chrono::seconds(second));
    observation.interval_seconds = 1;
    observation.cpu_cores = second % 7;
    observation.memory_need_bytes = 1e8 * (second % 5);
    observation.phase = {PhaseState::known, second % 3};
    policy.observe(observation);
    const Recommendation recommendation = policy.allocate(Limits{}, kHost);
    if (recommendation.cpu)
      CHECK_INVARIANT(recommendation.cpu->value >= 0 &&
                      recommendation.cpu->value <= kHost.cpu_cores);
    if (recommendation.memory) CHECK_INVARIANT(recommendation.memory->value <= kHost.memory.value);
  }
  for (const int horizon : {1, 3600, 30 * 86'400})
    if (const auto forecast = policy.forecast(std::chrono::seconds(horizon)))
      check_forecast(*forecast);
  const LearnedState learned = policy.learned();
  if (!is_empty(learned)) CHECK_INVARIANT(!is_empty(merge_learned(prior, learned)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const std::size_t line = input.find('\n');
  const auto spec = parse_policy_spec(input.substr(0, line));
  if (!spec) {
    CHECK_INVARIANT(spec.error().kind == ErrorKind::invalid);
    CHECK_INVARIANT(printable(spec.error().text) == spec.error().text);
    return 0;
  }
  CHECK_INVARIANT(parse_policy_spec(to_string(*spec)) == *spec);
  const auto rest = line == std::string_view::npos ? std::string_view{} : input.substr(line + 1);
  const LearnedState prior =
      learned_from_json(nlohmann::json::parse(rest, nullptr, false)).value_or(LearnedState{});
  run(*spec, prior);
  run(*spec, merge_learned(merge_learned({}, prior), prior));
  return 0;
}
