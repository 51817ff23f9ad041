#include "policy/phase/phase_usage.h"

namespace cgphase {
namespace {

constexpr DecayingHistogram::Shape kUsageShape{0.01, 3600};
constexpr double kUsageQuantile = 0.99;

}  // namespace

void PhaseUsage::add(const Phase& phase, double cores, double seconds, MonotonicTime time) {
  if (!phase.known()) return;
  if (!cores_.contains(phase.index) && cores_.size() >= kPhases) return;
  cores_.try_emplace(phase.index, kUsageShape)
      .first->second.add(cores, seconds, seconds_of(time));
}

double PhaseUsage::p99_cores(const Phase& phase) const {
  const auto found = cores_.find(phase.index);
  if (found == cores_.end()) return 0;
  const auto cores = found->second.quantile(kUsageQuantile);
  // The lowest bucket counts as no use.
  return cores && *cores > kUsageShape.first ? *cores : 0;
}

double PhaseUsage::samples(const Phase& phase) const {
  const auto found = cores_.find(phase.index);
  return found == cores_.end() ? 0 : found->second.count();
}

}  // namespace cgphase
