// What one sample says about a container: its phase, its use, and what it gave back. Pure.
#pragma once

#include <optional>

#include "collectors/sample.h"
#include "core/core.h"
#include "model/feature_extractor.h"
#include "model/phase_tracker.h"
#include "policy/policy.h"

namespace cgphase {

// Updates the phase. It changes only when a model step is complete or after a gap.
void update_phase(ContainerView& view, std::optional<FeatureExtractor>& extractor,
                  std::optional<PhaseTracker>& tracker, const Sample& sample,
                  const NodeSample& tick, bool gap);

// `interval_seconds` is 0 for the first sample and after a gap: CPU use is then unknown.
// `lowest_cpu_cores`: the lowest quota since the previous sample.
Observation observe(const Sample& sample, const Sample& previous,
                    std::optional<double> lowest_cpu_cores, double interval_seconds,
                    const NodeSample& tick, const Phase& phase);

// Adds the interval to the time in the phase, the savings and the delay by memory.high. A limit
// that somebody raised above the original does not reduce the savings. If containers are nested,
// the outer one's limit is what the host grants.
void account(ContainerView& view, const Sample& sample, double interval_seconds);

}  // namespace cgphase
