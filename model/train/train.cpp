#include "model/train/train.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "model/centroids.h"
#include "model/crbm_fixed.h"
#include "model/train/crbm_trainer.h"
#include "model/train/fixed_proof.h"
#include "model/train/kmeans.h"
#include "model/train/summary.h"
#include "model/train/training_input.h"

namespace cgphase {
namespace {

constexpr std::size_t kNamedInputs = 32;
constexpr std::size_t kNameBytes = 200;

Status check_options(const TrainOptions& options) {
  const auto within = [](int value, int low, int high, const char* name) -> Status {
    if (value >= low && value <= high) return {};
    return failure(ErrorKind::invalid,
                   fmt::format("{}: {} is outside {}..{}", name, value, low, high));
  };
  if (Status s = within(options.hidden, 1, kMaxHidden, "hidden"); !s) return s;
  if (Status s = within(options.history, 0, kMaxHistory, "history"); !s) return s;
  if (Status s = within(options.clusters, kAutomaticClusters, kMaxPhases, "clusters"); !s) return s;
  if (Status s = within(options.epochs, 0, kMaxEpochs, "epochs"); !s) return s;
  if (Status s = within(options.batch, 1, kMaxBatch, "batch"); !s) return s;
  if (!(options.momentum >= 0 && options.momentum < 1))
    return failure(ErrorKind::invalid, "momentum: must be from 0 to below 1");
  if (!(options.learning_rate > 0 && options.learning_rate <= 10))
    return failure(ErrorKind::invalid, "learning rate: must be above 0 and at most 10");
  if (!(options.stickiness >= 0 && options.stickiness <= kMaxStickiness))
    return failure(ErrorKind::invalid,
                   fmt::format("stickiness: must be from 0 to {}", kMaxStickiness));
  if (!(options.step_seconds > 0 && options.step_seconds <= kMaxStepSeconds))
    return failure(ErrorKind::invalid, "step: must be above 0 and at most a day");
  return {};
}

std::string name_of(std::span<const TraceSource> traces) {
  if (traces.empty()) return "no traces";
  const std::string& first = traces.front().path;
  return traces.size() == 1 ? first : fmt::format("{} and {} more", first, traces.size() - 1);
}

KMeansFit find_phases(std::span<const double> points, const TrainOptions& options) {
  KMeansOptions kmeans_options;
  kmeans_options.seed = options.seed;
  kmeans_options.clusters = options.clusters;
  if (options.clusters == kAutomaticClusters)
    kmeans_options.clusters =
        clusters_at_elbow(points, options.hidden, kMostAutomaticClusters, kmeans_options);
  return kmeans(points, options.hidden, kmeans_options);
}

// The cost is rounded to the grid of the integers, like all values that decide about phases.
double switch_cost(const Centroids& centroids, std::span<const double> points, double stickiness) {
  const auto dimension = static_cast<std::size_t>(centroids.dimension);
  double sum = 0;
  for (std::size_t begin = 0; begin < points.size(); begin += dimension)
    sum += nearest_centroid(centroids, points.subspan(begin, dimension)).distance;
  const double mean = sum / static_cast<double>(points.size() / dimension);
  const double cost = std::min(stickiness * mean, kMaxSwitchCost);
  return std::ldexp(std::round(std::ldexp(cost, 2 * kActivationShift)), -2 * kActivationShift);
}

void fill_provenance(Model& model, const TrainOptions& options, std::span<const TraceSource> traces,
                     const Dataset& data, const CrbmFit& fit) {
  auto& provenance = model.provenance;
  provenance["program"] = "cgphase train " CGPHASE_VERSION;
  provenance["seed"] = fmt::format("{}", options.seed);
  const std::string clusters =
      options.clusters == kAutomaticClusters ? "auto" : fmt::format("{}", options.clusters);
  provenance["options"] = fmt::format(
      "clusters {} epochs {} learning-rate {} momentum {} batch {} stickiness {}", clusters,
      options.epochs, options.learning_rate, options.momentum, options.batch, options.stickiness);
  provenance["windows"] = fmt::format("{}", data.size());
  provenance["epochs"] = fmt::format("{}", fit.epochs);
  provenance["reconstruction_error"] =
      fmt::format("{:.6f} trained, {:.6f} held out", fit.error, fit.held_out_error);
  const FixedProof proof = prove_fixed(model, data);
  provenance["certified_share"] = fmt::format(
      "{:.6f}", static_cast<double>(proof.certified) / static_cast<double>(proof.windows));
  provenance["inputs"] = fmt::format("{}", traces.size());
  for (std::size_t i = 0; i < std::min(traces.size(), kNamedInputs); ++i) {
    const std::string name = std::filesystem::path(traces[i].path).filename().string();
    provenance[fmt::format("input_{:02}", i + 1)] =
        fmt::format("{} crc32c {:08x}", escape_name(name.substr(0, kNameBytes)), traces[i].crc);
  }
}

}  // namespace

Result<Model> train(const TrainOptions& options, std::span<const Trace> traces,
                    const std::function<void(const EpochReport&)>& progress) {
  const std::vector<TraceSource> sources(traces.begin(), traces.end());
  return train(options,
               make_dataset(traces, options.schema, options.step_seconds, options.history),
               sources, progress);
}

Result<Model> train(const TrainOptions& options, const Dataset& data,
                    std::span<const TraceSource> sources,
                    const std::function<void(const EpochReport&)>& progress) {
  if (Status status = check_options(options); !status) return std::unexpected(status.error());
  const std::size_t needed =
      std::max(kFewestWindows, static_cast<std::size_t>(options.clusters) * 2);
  if (Status status = check_training_input(data, options.step_seconds, needed, name_of(sources));
      !status)
    return std::unexpected(status.error());

  CrbmTraining training;
  training.hidden = options.hidden;
  training.max_epochs = options.epochs;
  training.learning_rate = options.learning_rate;
  training.momentum = options.momentum;
  training.batch = options.batch;
  training.seed = options.seed;
  const CrbmFit fit = fit_crbm(data, training, progress);

  Model model;
  model.schema = options.schema;
  model.step_seconds = options.step_seconds;
  model.scaler = data.scaler;
  model.crbm = fit.crbm;
  // From here on the double engine and the integers have the same weights.
  snap_to_grid(model.crbm);
  const std::vector<double> points = activations(model.crbm, data);
  const KMeansFit found = find_phases(points, options);
  std::vector<std::size_t> windows(data.size());
  std::iota(windows.begin(), windows.end(), 0);
  model.centroids = in_order(found, data, windows);
  snap_to_grid(model.centroids);
  model.switch_cost = switch_cost(model.centroids, points, options.stickiness);
  model.phases = summarise(model, data, points);
  fill_provenance(model, options, sources, data, fit);
  if (Status status = check_model(model, "trained model"); !status)
    return std::unexpected(status.error());
  return model;
}

}  // namespace cgphase
