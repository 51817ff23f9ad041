// Cost of one `cgphase fit` request in the daemon: forecasts of all containers and the sum of their
// peaks. It measures a job that fits and one that does not; the latter tests seven durations and
// the changes of phases. One JSON object per line and number of containers; CPU time, medians.
//
//   bench_fit [--rounds N]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/parse.h"
#include "policy/budget/host_fit.h"
#include "policy/policy.h"

using namespace cgphase;

namespace {

constexpr std::array<int, 3> kContainerCounts = {10, 100, 1000};
constexpr int kDefaultRounds = 15, kSamples = 600, kPhases = 6, kVisitSamples = 20;

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A policy that has seen ten minutes of alternating phases, each with its own needs.
std::unique_ptr<Policy> watcher(int container) {
  std::unique_ptr<Policy> policy = make_policy("phase").value();
  for (int i = 0; i < kSamples; ++i) {
    const int phase = (container + i / kVisitSamples) % kPhases;
    policy->observe({.time = MonotonicTime(std::chrono::seconds(i)), .interval_seconds = 1,
                     .cpu_cores = 0.1 + 0.2 * phase, .memory_need_bytes = 1e7 * (1 + phase),
                     .cpu_limit_cores = {}, .phase = {.state = PhaseState::known, .index = phase}});
  }
  return policy;
}

class Host {
 public:
  explicit Host(int containers) : cores_(2.0 * containers) {
    for (int i = 0; i < containers; ++i) policies_.push_back(watcher(i));
  }

  // Seconds for a request of `share` of the cores.
  double cost(double share) const {
    const double begun = cpu_seconds();
    const FitAnswer answer = answer_fit(
        {.cpu_cores = share * cores_, .memory_bytes = 1e6, .duration = std::chrono::hours(1)},
        {.capacity = {cores_, Bytes{1ULL << 42}}, .outside_cpu_cores = {},
         .outside_memory_bytes = {}},
        [this](std::chrono::seconds duration) { return known(duration); });
    const double taken = cpu_seconds() - begun;
    if (answer.fits != (share < 0.5)) throw std::runtime_error("the answer is wrong");
    return taken;
  }

 private:
  std::vector<KnownContainer> known(std::chrono::seconds duration) const {
    std::vector<KnownContainer> all;
    const Limits two_cores{.cpu_max = CpuMax{Microseconds{200'000}},
                           .memory_max = MemoryLimit{Bytes{kGiB}}};
    for (const auto& policy : policies_)
      all.push_back({.name = "job", .forecast = policy->forecast(duration), .original = two_cores,
                     .highest_cpu_cores = {}, .highest_memory_bytes = {}});
    return all;
  }

  double cores_;
  std::vector<std::unique_ptr<Policy>> policies_;
};

double median_ms(const Host& host, double share, int rounds) {
  std::vector<double> taken;
  for (int i = 0; i < rounds; ++i) taken.push_back(host.cost(share));
  std::ranges::sort(taken);
  return taken[taken.size() / 2] * 1000;
}

}  // namespace

int main(int count, char** words) {
  int rounds = kDefaultRounds;
  if (count == 3 && std::string_view(words[1]) == "--rounds")
    rounds = static_cast<int>(parse_u64(words[2]).value_or(0));
  else if (count != 1)
    rounds = 0;
  if (rounds < 1 || rounds > 1000) {
    std::fprintf(stderr, "usage: bench_fit [--rounds N], N from 1 to 1000\n");
    return 2;
  }
  for (const int containers : kContainerCounts) {
    const Host host(containers);
    std::printf("{\"containers\": %d, \"fits_ms\": %.3f, \"does_not_fit_ms\": %.3f}\n", containers,
                median_ms(host, 0.1, rounds), median_ms(host, 0.94, rounds));
  }
  return 0;
}
