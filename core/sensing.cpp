#include "core/sensing.h"

#include <algorithm>
#include <limits>

#include "policy/budget/saving.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {
namespace {

// Counters are read slightly before or after their time. No container can use more than the host
// has.
double most_cores(const HostCapacity& host) {
  return host.cpu_cores > 0 ? host.cpu_cores : std::numeric_limits<double>::infinity();
}

}  // namespace

void update_phase(ContainerView& view, std::optional<FeatureExtractor>& extractor,
                  std::optional<PhaseTracker>& tracker, const Sample& sample,
                  const NodeSample& tick, bool gap) {
  if (!extractor) return;
  const FeatureExtractor::Step step =
      extractor->add(sample, sample.read_time.value_or(tick.time), view.original, tick.host);
  Phase phase = view.phase;
  if (gap || step.gap) {
    tracker->reset();
    phase = Phase{};
  }
  if (step.vector) phase = tracker->step(*step.vector);
  const bool same = phase.state == view.phase.state && phase.index == view.phase.index;
  if (!same) view.phase_since = tick.time;
  view.phase = phase;
}

Observation observe(const Sample& sample, const Sample& previous,
                    std::optional<double> lowest_cpu_cores, double interval_seconds,
                    const NodeSample& tick, const Phase& phase) {
  Observation observation{.time = tick.time, .interval_seconds = interval_seconds, .phase = phase};
  if (const auto need = memory_need(sample))
    observation.memory_need_bytes = static_cast<double>(need->value);
  if (interval_seconds <= 0) return observation;
  if (const Counter used = growth(sample.cpu.usage_usec, previous.cpu.usage_usec))
    observation.cpu_cores =
        std::min(static_cast<double>(*used) / 1e6 / interval_seconds, most_cores(tick.host));
  observation.cpu_censored =
      growth(sample.cpu.nr_throttled, previous.cpu.nr_throttled).value_or(0) > 0;
  observation.cpu_limit_cores = lowest_cpu_cores;
  return observation;
}

void account(ContainerView& view, const Sample& sample, double interval_seconds) {
  view.seconds_in_phase[view.phase.known() ? view.phase.index : -1] += interval_seconds;
  const Counter stalled = sample.memory_pressure.some.total_usec;
  if (stalled && !view.memory_delay_usec) view.memory_delay_usec = 0;
  if (!is_original(sample.limits, view.original, Resource::memory))
    if (const auto delay = growth(stalled, view.sample.memory_pressure.some.total_usec))
      *view.memory_delay_usec += *delay;
  const Saving saved = saving(view.original, sample.limits, view.ancestor_limits);
  if (!view.cpu_limit_around) view.saved_core_seconds += saved.cpu_cores * interval_seconds;
  if (!view.memory_limit_around)
    view.saved_byte_seconds += static_cast<double>(saved.memory_bytes) * interval_seconds;
}

}  // namespace cgphase
