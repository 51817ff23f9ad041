#include "policy/phase/learned_usage.h"

#include <algorithm>

namespace cgphase {
namespace {

constexpr int kMostUsageRuns = 1'000'000;
constexpr double kMaxHalfLifeSeconds = 1e9;
constexpr std::size_t kMostPolicyBytes = 64;

bool good_half_life(const DecayingHistogram& histogram) {
  return histogram.shape().half_life_seconds <= kMaxHalfLifeSeconds;
}

}  // namespace

double bounded_half_life(double seconds) {
  constexpr double kLeast = 1, kMost = 1e8;
  return seconds >= kLeast ? std::min(seconds, kMost) : kLeast;
}

Status check(const LearnedUsage& learned) {
  if (learned.policy.empty() || learned.policy.size() > kMostPolicyBytes)
    return failure(ErrorKind::invalid, "learned usage: \"policy\" is not the name of a policy");
  if (learned.runs < 0 || learned.runs > kMostUsageRuns)
    return failure(ErrorKind::invalid, "learned usage: \"runs\" is out of range");
  if (!good_half_life(learned.cpu_cores) || !good_half_life(learned.memory_bytes))
    return failure(ErrorKind::invalid, "learned usage: a half-life is out of range");
  if (Status good = learned.cpu_cores.check(); !good) return good;
  return learned.memory_bytes.check();
}

std::optional<LearnedUsage> with_shapes(const LearnedUsage& learned, std::string_view policy,
                                        const UsageShapes& shapes) {
  if (learned.policy != policy || !check(learned)) return std::nullopt;
  if (learned.cpu_cores.shape().first != shapes.cpu.first ||
      learned.memory_bytes.shape().first != shapes.memory.first)
    return std::nullopt;
  LearnedUsage usage = learned;
  usage.cpu_cores = learned.cpu_cores.with_half_life(shapes.cpu.half_life_seconds);
  usage.memory_bytes = learned.memory_bytes.with_half_life(shapes.memory.half_life_seconds);
  return usage;
}

LearnedUsage merge(const LearnedUsage& earlier, const LearnedUsage& run) {
  const UsageShapes shapes{run.cpu_cores.shape(), run.memory_bytes.shape()};
  LearnedUsage merged(run.policy, shapes);
  if (const auto before = with_shapes(earlier, run.policy, shapes)) {
    merged.cpu_cores.merge(before->cpu_cores, kRunDecay);
    merged.memory_bytes.merge(before->memory_bytes, kRunDecay);
    merged.runs = before->runs;
  }
  merged.cpu_cores.merge(run.cpu_cores, 1);
  merged.memory_bytes.merge(run.memory_bytes, 1);
  merged.cpu_cores = merged.cpu_cores.without_times();
  merged.memory_bytes = merged.memory_bytes.without_times();
  merged.runs = std::min(merged.runs + run.runs, kMostUsageRuns);
  return merged;
}

}  // namespace cgphase
