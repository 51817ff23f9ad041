// Trains a model from traces: scaler, CRBM, phases and their statistics. Not linked into the
// daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "model/feature_schema.h"
#include "model/model.h"
#include "model/train/dataset.h"
#include "model/train/epoch_report.h"
#include "traces/trace.h"

namespace cgphase {

inline constexpr int kAutomaticClusters = 0;
inline constexpr int kMostAutomaticClusters = 10;
inline constexpr std::size_t kFewestWindows = 20;
inline constexpr int kMaxEpochs = 100'000;
inline constexpr int kMaxBatch = 65'536;
inline constexpr double kMaxStickiness = 1000;

// The options of model/default_model.json; tests/data/README.md explains the choice.
struct TrainOptions {
  FeatureSchema schema = log_schema();
  double step_seconds = 1;
  int history = 0;
  int hidden = 20;
  int clusters = 6;  // or kAutomaticClusters: at the elbow of cohesion
  int epochs = 500;
  double learning_rate = 0.01, momentum = 0.9;
  int batch = 16;  // windows per step of the CRBM; 1: one by one
  // The model's switch cost, in multiples of the mean squared distance of a training window to its
  // nearest centroid. With 0, the phase is the nearest one.
  double stickiness = 3;
  std::uint64_t seed = 1;
};

// The same options and the same traces in the same order give the same model, byte for byte.
//
// Phases are numbered by rising mean of the first feature. Weights and centroids are on the grid of
// the fixed-point engine. The provenance contains the options, the CRCs of the inputs, the errors
// and the fraction of training windows whose nearest phase the engine certifies. Errors: invalid
// (an option out of bounds, or too few windows).
Result<Model> train(const TrainOptions& options, std::span<const Trace> traces,
                    const std::function<void(const EpochReport&)>& progress = {});

// The same for windows that were already cut from these traces, with the schema, step and history
// of the options and a scaler of their own (DatasetMaker).
Result<Model> train(const TrainOptions& options, const Dataset& data,
                    std::span<const TraceSource> sources,
                    const std::function<void(const EpochReport&)>& progress = {});

}  // namespace cgphase
