#include "tests/workloads/plan.h"

#include <algorithm>
#include <cmath>

#include "tests/workloads/random.h"

namespace cgphase::workloads {

namespace {

constexpr double kVariation = 0.2;
constexpr double kLullPerSecond = 5, kBurstPerSecond = 80;
constexpr double kSecondModelShare = 0.3;
constexpr std::uint32_t kKeys = 12'000;

struct Share {
  const char* phase;
  double weight;
};

std::vector<Stage> to_stages(const std::vector<Share>& shares, std::uint64_t seed, double seconds) {
  Random random(derive_seed(seed, 1));
  std::vector<double> weights;
  double sum = 0;
  for (const Share& share : shares)
    sum += weights.emplace_back(share.weight * random.between(1 - kVariation, 1 + kVariation));
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double tenths = std::round(weights[i] / sum * seconds * 10);
    stages.push_back({shares[i].phase, Milliseconds(100 * std::max(1L, std::lround(tenths)))});
  }
  return stages;
}

int repetitions(double seconds, double each) {
  return static_cast<int>(std::max(1.0, std::round(seconds / each)));
}

}  // namespace

std::vector<Stage> train_plan(std::uint64_t seed, double seconds) {
  std::vector<Share> shares = {{"download", 14}, {"preprocess", 11}};
  for (int epoch = 0; epoch < repetitions(seconds - 32, 20); ++epoch)
    shares.insert(shares.end(), {{"train", 13}, {"validate", 4}, {"checkpoint", 4}});
  shares.push_back({"evaluate", 7});
  return to_stages(shares, seed, seconds);
}

std::vector<Stage> serve_plan(std::uint64_t seed, double seconds) {
  std::vector<Share> shares = {{"start", 5}};
  for (int burst = 0; burst < repetitions(seconds - 5, 22); ++burst)
    shares.insert(shares.end(), {{"lull", 11}, {"burst", 11}});
  return to_stages(shares, seed, seconds);
}

std::vector<Stage> batch_plan(std::uint64_t seed, double seconds, double wait) {
  std::vector<Share> shares;
  for (int cycle = 0; cycle < repetitions(seconds - wait, 24); ++cycle)
    shares.insert(shares.end(), {{"ingest", 8}, {"sort", 8}, {"write", 3}, {"idle", 5}});
  std::vector<Stage> stages = to_stages(shares, seed, seconds - wait);
  if (wait > 0) stages.insert(stages.begin(), {"idle", Milliseconds(std::lround(1000 * wait))});
  return stages;
}

std::vector<Arrival> arrivals(std::uint64_t seed, const std::vector<Stage>& stages) {
  Random random(derive_seed(seed, 2));
  std::vector<Arrival> all;
  double begin = 0;
  int bursts = 0;
  for (const Stage& stage : stages) {
    const bool burst = stage.phase == "burst";
    bursts += burst;
    const double end = begin + std::chrono::duration<double>(stage.length).count();
    const double rate = burst ? kBurstPerSecond : kLullPerSecond;
    double time = begin;
    while (stage.phase != "start") {
      time -= std::log(1 - random.uniform()) / rate;
      if (time >= end) break;
      const double popularity = random.uniform();
      const bool second = bursts >= 2 && random.uniform() < kSecondModelShare;
      all.push_back(
          {time, second ? 1 : 0, static_cast<std::uint32_t>(popularity * popularity * kKeys)});
    }
    begin = end;
  }
  return all;
}

}  // namespace cgphase::workloads
