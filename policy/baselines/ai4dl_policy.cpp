#include "policy/baselines/ai4dl_policy.h"

#include <cmath>
#include <fmt/format.h>

#include "policy/ceiling.h"

namespace cgphase {

void Ai4dlPolicy::observe(const Observation& observation) { phase_ = observation.phase; }

Recommendation Ai4dlPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  const auto index = static_cast<std::size_t>(phase_.index);
  if (!phase_.known() || phase_.index < 0 || index >= statistics_->size()) return {};
  const PhaseStatistics& phase = (*statistics_)[index];
  if (!(phase.count > 0)) return {};
  const double cores = phase.cpu_mean_cores + deviations_ * phase.cpu_deviation_cores;
  const double bytes = phase.memory_mean_bytes + deviations_ * phase.memory_deviation_bytes;
  Recommendation allocation;
  allocation.reason = Reason::phase_statistics;
  if (std::isfinite(cores)) {
    allocation.cpu = capped_cores(cores, original, host);
    allocation.cpu_sample_count = phase.count;
  }
  if (std::isfinite(bytes)) {
    allocation.memory = capped_bytes(bytes, original, host);
    allocation.memory_sample_count = phase.count;
  }
  return allocation;
}

Result<std::unique_ptr<Policy>> make_ai4dl(const PolicyArgs& making) {
  if (!making.environment.phase_statistics)
    return failure(ErrorKind::invalid,
                   fmt::format("policy \"{}\" needs phase statistics of training executions, "
                               "which only cgphase replay makes",
                               making.name));
  return std::make_unique<Ai4dlPolicy>(making.environment.phase_statistics,
                                       making.values.at("deviations"));
}

}  // namespace cgphase
