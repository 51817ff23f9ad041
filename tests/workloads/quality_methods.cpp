#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "model/ai4dl.h"
#include "model/centroids.h"
#include "model/crbm_fixed.h"
#include "model/phase_path.h"
#include "model/train/ai4dl_train.h"
#include "model/train/crbm_trainer.h"
#include "model/train/decode.h"
#include "model/train/kmeans.h"
#include "tests/workloads/change_points.h"
#include "tests/workloads/gaussian_mixture.h"
#include "tests/workloads/quality.h"

namespace cgphase::workloads {
namespace {

// If the model has fewer features, it may see more steps than the fold has, but never fewer.
Labels model_labels(const Model& model, const Fold& fold) {
  const Dataset data = make_dataset(fold.test, model);
  const std::vector<NearestCentroid> found =
      decode_phases(model, data, activations(model.crbm, data));
  const auto place = [](const Dataset& of, std::size_t window) {
    return std::pair(of.execution[window], of.row[window]);
  };
  Labels labels;
  std::size_t at = 0;
  for (std::size_t i = 0; i < fold.test_logs.size(); ++i, ++at) {
    while (at < data.size() && place(data, at) < place(fold.test_logs, i)) ++at;
    CHECK_INVARIANT(at < data.size() && place(data, at) == place(fold.test_logs, i));
    labels.push_back(found[at].index);
  }
  return labels;
}

// The standardised features of the last step of each window, row-major.
std::vector<double> last_steps(const Dataset& data) {
  const auto features = static_cast<std::size_t>(data.features);
  std::vector<double> points;
  for (const std::size_t step : data.last_step)
    points.insert(points.end(), &data.standardised[step * features],
                  &data.standardised[step * features] + features);
  return points;
}

KMeansFit clusters_of(std::span<const double> points, int dimension, int clusters,
                      std::uint64_t seed) {
  KMeansOptions options;
  options.clusters = clusters;
  options.seed = seed;
  return kmeans(points, dimension, options);
}

// The path accepts squared distances up to kMaxHidden. Those of standardised features are at most
// kMaxFeatures (2 * 8)^2. Dividing all distances and the cost by a constant changes nothing else.
constexpr double kUnits = 0x1p30 / 64;

Labels nearest_labels(const Centroids& centroids, const Dataset& data, double switch_cost) {
  const auto dimension = static_cast<std::size_t>(centroids.dimension);
  const std::vector<double> points = last_steps(data);
  PhasePath path(centroids, std::ldexp(std::round(switch_cost * kUnits), -2 * kActivationShift));
  std::vector<std::int64_t> distances(static_cast<std::size_t>(centroids.count));
  Labels labels;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!data.follows[i]) path.reset();
    for (std::size_t k = 0; k < distances.size(); ++k)
      distances[k] = std::llround(
          kUnits * squared_distance(std::span(&points[i * dimension], dimension),
                                    std::span(&centroids.values[k * dimension], dimension)));
    labels.push_back(path.step(distances, 0).index);
  }
  return labels;
}

// For each window the mean of its segment, row-major.
std::vector<double> segment_means(const Dataset& data) {
  const auto dimension = static_cast<std::size_t>(data.features);
  const std::vector<double> points = last_steps(data);
  std::vector<double> means;
  for (std::size_t begin = 0, end = 0; begin < data.size(); begin = end) {
    end = begin + 1;
    while (end < data.size() && data.follows[end]) ++end;
    const std::span<const double> piece(&points[begin * dimension], (end - begin) * dimension);
    std::vector<std::size_t> starts =
        segments(piece, dimension, segment_penalty(piece, dimension));
    starts.push_back(end - begin);
    for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
      std::vector<double> mean(dimension, 0);
      for (std::size_t i = starts[s]; i < starts[s + 1]; ++i)
        for (std::size_t d = 0; d < dimension; ++d) mean[d] += piece[i * dimension + d];
      for (double& value : mean) value /= static_cast<double>(starts[s + 1] - starts[s]);
      for (std::size_t i = starts[s]; i < starts[s + 1]; ++i)
        means.insert(means.end(), mean.begin(), mean.end());
    }
  }
  return means;
}

}  // namespace

Method crbm_method(const TrainOptions& options) {
  return [options](const Fold& fold, std::uint64_t seed) -> Result<Labels> {
    TrainOptions seeded = options;
    seeded.seed = seed;
    const Result<Model> model = train(seeded, fold.training);
    if (!model) return std::unexpected(model.error());
    return model_labels(*model, fold);
  };
}

Method kmeans_method(Features features, int clusters, double stickiness) {
  return [=](const Fold& fold, std::uint64_t seed) -> Result<Labels> {
    const bool raw = features == Features::raw;
    const Dataset& training = raw ? fold.training_raw : fold.training_logs;
    const KMeansFit fit =
        clusters_of(last_steps(training), training.features, clusters, seed);
    const double mean_distance = fit.inertia / static_cast<double>(training.size());
    return nearest_labels(fit.centroids, raw ? fold.test_raw : fold.test_logs,
                          stickiness * mean_distance);
  };
}

Method mixture_method(int components) {
  return [=](const Fold& fold, std::uint64_t seed) -> Result<Labels> {
    const std::vector<double> training = last_steps(fold.training_logs);
    const GaussianMixture mixture = fit_mixture(training, fold.training_logs.features,
                                                {.components = components, .seed = seed});
    const std::vector<double> points = last_steps(fold.test_logs);
    const auto dimension = static_cast<std::size_t>(fold.test_logs.features);
    Labels labels;
    for (std::size_t i = 0; i < fold.test_logs.size(); ++i)
      labels.push_back(mixture.component(std::span(&points[i * dimension], dimension)));
    return labels;
  };
}

Method change_point_method(int clusters) {
  return [=](const Fold& fold, std::uint64_t seed) -> Result<Labels> {
    const int features = fold.training_logs.features;
    const KMeansFit fit =
        clusters_of(segment_means(fold.training_logs), features, clusters, seed);
    const std::vector<double> means = segment_means(fold.test_logs);
    const auto dimension = static_cast<std::size_t>(features);
    Labels labels;
    for (std::size_t i = 0; i < means.size(); i += dimension)
      labels.push_back(
          nearest_centroid(fit.centroids, std::span(&means[i], dimension)).index);
    return labels;
  };
}

Method ai4dl_method(std::size_t later) {
  return [later](const Fold& fold, std::uint64_t seed) -> Result<Labels> {
    Ai4dlTraining options;
    options.seed = seed;
    const Result<Model> model = train_ai4dl(options, fold.training);
    if (!model) return std::unexpected(model.error());
    std::vector<std::vector<Phase>> phases;
    for (const Trace& trace : fold.test)
      for (const Execution& execution : trace.executions)
        phases.push_back(ai4dl_phases(*model, execution));
    Labels labels;
    for (std::size_t i = 0; i < fold.test_logs.size(); ++i) {
      const std::vector<Phase>& told = phases[fold.test_logs.execution[i]];
      labels.push_back(told[std::min(fold.test_logs.row[i] + later, told.size() - 1)].index);
    }
    return labels;
  };
}

}  // namespace cgphase::workloads
