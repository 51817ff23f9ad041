// Cost of one step of a policy: observe() and allocate(), after a warm-up. One JSON line per policy
// and risk, with the ratio to `hold`. It measures the phase-free controls, and ours at the daemon's
// default risks for memory and CPU. The demand is a job that alternates between two phases, with
// noise, and has one sample for each second of a day.
//
//   bench_policy
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "policy/policy.h"

namespace {

using namespace cgphase;
using SteadyClock = std::chrono::steady_clock;

constexpr int kSamples = 86'400;
constexpr int kRounds = 3;  // the best one counts

struct Case {
  const char* policy;
  double risk;
};
constexpr Case kCases[] = {{"hold", kShippedRisk},      {"sliding", kShippedRisk},
                           {"phase", kShippedRisk},     {"phase", 10 * kShippedRisk},
                           {"proactive", kShippedRisk}, {"proactive", 10 * kShippedRisk}};

// Phase 0 for 200 samples, then phase 1 for 100, each with 10 % noise.
std::vector<Observation> demand() {
  std::vector<Observation> samples(kSamples);
  std::uint64_t state = 1;
  for (int i = 0; i < kSamples; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const double noise = 1 + 0.1 * static_cast<double>(state >> 11) * 0x1p-53;
    const int phase = i % 300 < 200 ? 0 : 1;
    Observation& sample = samples[static_cast<std::size_t>(i)];
    sample.time = MonotonicTime(std::chrono::seconds(i));
    sample.interval_seconds = i == 0 ? 0 : 1;
    sample.cpu_cores = noise * (phase == 0 ? 0.5 : 3);
    sample.memory_need_bytes = noise * (phase == 0 ? 1e9 : 4e9);
    sample.phase.state = PhaseState::known;
    sample.phase.index = phase;
  }
  return samples;
}

double best_ns_per_step(const Case& one, const std::vector<Observation>& samples) {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{400'000}, Microseconds{100'000}};
  limits.memory_max = MemoryLimit{Bytes{8 * kGiB}};
  const HostCapacity host{16, Bytes{64 * kGiB}};
  PolicyEnvironment around;
  around.risk = one.risk;
  std::optional<double> best;
  for (int round = 0; round < kRounds; ++round) {
    const auto policy = make_policy(one.policy, {}, around).value();
    double cores = 0;
    const auto begun = SteadyClock::now();
    for (const Observation& sample : samples) {
      policy->observe(sample);
      cores += policy->allocate(limits, host).cpu.value_or(Cores{0}).value;
    }
    const std::chrono::duration<double, std::nano> took = SteadyClock::now() - begun;
    if (!(cores > 0)) std::fputs("bench_policy: a policy allocated no CPU\n", stderr);
    const double ns = took.count() / static_cast<double>(samples.size());
    if (!best || ns < *best) best = ns;
  }
  return *best;
}

}  // namespace

int main() {
  const std::vector<Observation> samples = demand();
  std::optional<double> hold;
  for (const Case& one : kCases) {
    const double ns = best_ns_per_step(one, samples);
    if (!hold) hold = ns;
    std::printf("{\"bench\":\"policy\",\"policy\":\"%s\",\"risk\":%g,\"samples\":%d,"
                "\"ns_per_step\":%.0f,\"ratio\":%.2f}\n",
                one.policy, one.risk, kSamples, ns, ns / *hold);
    std::fflush(stdout);
  }
}
