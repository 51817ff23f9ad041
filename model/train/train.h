// From traces to a model: scaler, CRBM, phases and their statistics. Not linked into the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "model/feature_schema.h"
#include "model/model.h"
#include "model/trace.h"
#include "model/train/dataset.h"
#include "model/train/epoch_report.h"

namespace cgphase {

inline constexpr int kAutomaticClusters = 0;
inline constexpr int kMostAutomaticClusters = 10;
inline constexpr std::size_t kFewestWindows = 20;
inline constexpr int kMaxEpochs = 100'000;
inline constexpr double kMaxStickiness = 1000;

struct TrainOptions {
  FeatureSchema schema = default_schema();
  double step_seconds = 2;
  int history = 3;
  int hidden = 10;
  int clusters = 5;  // or kAutomaticClusters: at the elbow of cohesion
  int epochs = 500;
  double learning_rate = 0.01;
  // The model's switch cost in multiples of the mean squared distance of a training window to its
  // nearest centroid; 0: the phase is the nearest one.
  double stickiness = 5;
  std::uint64_t seed = 1;
};

// The same options and the same traces in the same order give the same model, byte for byte.
//
// Phases are numbered by rising mean of the first feature. Weights and centroids lie on the grid of
// the fixed-point engine; provenance tells the options, the inputs' CRCs, the errors reached and
// the share of training windows whose nearest phase the engine certifies. Errors: invalid (an
// option out of bounds, or too few windows).
Result<Model> train(const TrainOptions& options, std::span<const Trace> traces,
                    const std::function<void(const EpochReport&)>& progress = {});

// The same on windows that were cut already, with the schema, step and history of the options and a
// scaler of their own (DatasetMaker), out of these traces.
Result<Model> train(const TrainOptions& options, const Dataset& data,
                    std::span<const TraceSource> sources,
                    const std::function<void(const EpochReport&)>& progress = {});

}  // namespace cgphase
