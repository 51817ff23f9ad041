#include "tests/workloads/ablation.h"

#include <cstddef>
#include <numeric>
#include <vector>

#include "model/crbm_fixed.h"
#include "model/train/crbm_trainer.h"
#include "model/train/dataset.h"
#include "model/train/kmeans.h"
#include "model/train/summary.h"
#include "model/train/train.h"

namespace cgphase::workloads {
namespace {

// Weight of a hidden unit's input. At three deviations the input is 0.6, where the sigmoid is 2.9 %
// below its tangent.
constexpr double kStraightWeight = 0.2;

// Each hidden unit sees one feature.
CrbmParameters identity(int features) {
  const auto n = static_cast<std::size_t>(features);
  CrbmParameters crbm{.n_vis = features, .n_hid = features, .n_his = 0};
  crbm.w.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) crbm.w[i * n + i] = kStraightWeight;
  crbm.visible_bias.assign(n, 0);
  crbm.hidden_bias.assign(n, 0);
  return crbm;
}

Result<Model> on_raw_features(std::span<const Trace> traces, int clusters) {
  const TrainOptions options;
  const Dataset data = make_dataset(traces, options.schema, options.step_seconds, 0);
  Model model;
  model.schema = options.schema;
  model.step_seconds = options.step_seconds;
  model.scaler = data.scaler;
  model.crbm = identity(data.features);
  snap_to_grid(model.crbm);
  const std::vector<double> points = activations(model.crbm, data);
  KMeansOptions kmeans_options;
  kmeans_options.clusters = clusters;
  kmeans_options.seed = options.seed;
  std::vector<std::size_t> windows(data.size());
  std::iota(windows.begin(), windows.end(), 0);
  model.centroids = in_order(kmeans(points, data.features, kmeans_options), data, windows);
  snap_to_grid(model.centroids);
  model.phases = summarise(model, data, points);
  if (Status status = check_model(model, "model of raw features"); !status)
    return std::unexpected(status.error());
  return model;
}

}  // namespace

Result<Model> reseeded_model(std::span<const Trace> traces, std::uint64_t seed) {
  TrainOptions options;
  options.seed = seed;
  return train(options, traces);
}

Result<Model> untrained_model(std::span<const Trace> traces) {
  TrainOptions options;
  options.epochs = 0;
  return train(options, traces);
}

Result<Model> raw_model(std::span<const Trace> traces) {
  return on_raw_features(traces, TrainOptions{}.clusters);
}

Result<Model> one_phase_model(std::span<const Trace> traces) { return on_raw_features(traces, 1); }

}  // namespace cgphase::workloads
