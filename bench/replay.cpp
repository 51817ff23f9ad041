// Speed of a replay: recorded seconds per second, closed loop, on one processor. One JSON line per
// policy and set of executions: those of the traces, and a synthetic one of a day with one sample
// per second. Every policy that can run is measured. `ratio` is relative to the required speed,
// kWantedSpeed.
//
//   bench_replay MODEL.json TRACE.csv...
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lab/replay/replay.h"
#include "policy/policy.h"
#include "tests/model/synthetic_trace.h"

namespace {

using namespace cgphase;
using SteadyClock = std::chrono::steady_clock;

constexpr double kWantedSpeed = 10'000;
constexpr double kLeastSeconds = 0.2;  // wall time for one number
constexpr int kDaySeconds = 86'400;

template <class T>
T checked(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "bench_replay: %s\n", result.error().text.c_str());
  std::exit(EXIT_FAILURE);
}

double recorded_seconds(const ReplayInput& input) {
  double seconds = 0;
  for (const Execution& execution : input.executions)
    seconds += std::chrono::duration<double>(execution.rows.back().time -
                                             execution.rows.front().time)
                   .count();
  return seconds;
}

std::size_t rows(const ReplayInput& input) {
  std::size_t count = 0;
  for (const Execution& execution : input.executions) count += execution.rows.size();
  return count;
}

// The best of as many rounds as fit into kLeastSeconds; absent if the policy cannot run.
std::optional<double> best_seconds(const ReplayInput& input, const std::string& policy) {
  ReplaySettings settings;
  settings.loop.enabled = true;
  std::optional<double> best;
  for (double spent = 0; spent < kLeastSeconds;) {
    const auto begun = SteadyClock::now();
    if (!replay(input, settings, {{policy, {}}, 0}, false)) return std::nullopt;
    const double took = std::chrono::duration<double>(SteadyClock::now() - begun).count();
    best = std::min(best.value_or(took), took);
    spent += took;
  }
  return best;
}

void report(const char* set, const ReplayInput& input) {
  for (const std::string_view name : policy_names()) {
    const std::string policy(name);
    const std::optional<double> seconds = best_seconds(input, policy);
    if (!seconds) continue;
    const double speed = recorded_seconds(input) / *seconds;
    std::printf("{\"bench\":\"replay\",\"set\":\"%s\",\"policy\":\"%s\",\"executions\":%zu,"
                "\"rows\":%zu,\"rows_per_sec\":%.0f,\"speed\":%.0f,\"ratio\":%.2f}\n",
                set, policy.c_str(), input.executions.size(), rows(input),
                static_cast<double>(rows(input)) / *seconds, speed, speed / kWantedSpeed);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bench_replay MODEL.json TRACE.csv...\n", stderr);
    return 2;
  }
  ReplayInput recorded;
  recorded.engine = checked(PhaseEngine::create(checked(load_model(argv[1]))));
  for (int i = 2; i < argc; ++i)
    for (Execution& execution : checked(read_trace(argv[i])).executions)
      recorded.executions.push_back(std::move(execution));
  report("recorded", recorded);
  ReplayInput day;
  day.engine = recorded.engine;
  day.executions = synthetic_trace(1, kDaySeconds).executions;
  report("synthetic day", day);
  return EXIT_SUCCESS;
}
