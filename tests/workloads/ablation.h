// Models that lack one part of ours, to show what the part is worth. All have the same features,
// the same training data and as many phases.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "model/model.h"
#include "traces/trace.h"

namespace cgphase::workloads {

// The default options with another seed.
Result<Model> reseeded_model(std::span<const Trace> traces, std::uint64_t seed);

// The default options without any training step: random weights, then k-means.
Result<Model> untrained_model(std::span<const Trace> traces);

// k-means on the standardised features. Each hidden unit passes one feature on, through the part of
// the sigmoid that is linear within 3 % up to three deviations.
Result<Model> raw_model(std::span<const Trace> traces);

// One phase for everything.
Result<Model> one_phase_model(std::span<const Trace> traces);

}  // namespace cgphase::workloads
