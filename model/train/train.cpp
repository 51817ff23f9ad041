#include "model/train/train.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"
#include "model/centroids.h"
#include "model/crbm_fixed.h"
#include "model/train/crbm_trainer.h"
#include "model/train/kmeans.h"

namespace cgphase {
namespace {

constexpr double kNoveltyQuantile = 0.99;
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
  if (!(options.learning_rate > 0 && options.learning_rate <= 10))
    return failure(ErrorKind::invalid, "learning rate: must be above 0 and at most 10");
  if (!(options.step_seconds > 0 && options.step_seconds <= kMaxStepSeconds))
    return failure(ErrorKind::invalid, "step: must be above 0 and at most a day");
  return {};
}

Status check_size(const Dataset& data, const TrainOptions& options) {
  const std::size_t needed =
      std::max(kFewestWindows, static_cast<std::size_t>(options.clusters) * 2);
  if (data.size() >= needed) return {};
  return failure(ErrorKind::invalid,
                 fmt::format("the traces give {} windows of {} steps of {} s without a gap, at "
                             "least {} are needed: record longer",
                             data.size(), options.history + 1, options.step_seconds, needed));
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

// Renumbers the clusters by rising mean of the first feature in their windows' last steps.
Centroids in_order(const KMeansFit& fit, const Dataset& data) {
  const auto count = static_cast<std::size_t>(fit.centroids.count);
  const auto dimension = static_cast<std::size_t>(fit.centroids.dimension);
  std::vector<double> sum(count, 0), windows(count, 0);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto label = static_cast<std::size_t>(fit.labels[i]);
    sum[label] += data.standardised[data.last_step[i] * static_cast<std::size_t>(data.features)];
    windows[label] += 1;
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sum[a] * windows[b] < sum[b] * windows[a];
  });
  Centroids sorted{fit.centroids.count, fit.centroids.dimension, {}};
  for (const std::size_t k : order)
    sorted.values.insert(sorted.values.end(), &fit.centroids.values[k * dimension],
                         &fit.centroids.values[k * dimension] + dimension);
  return sorted;
}

std::optional<std::size_t> position(const FeatureSchema& schema, Feature feature) {
  for (std::size_t i = 0; i < schema.entries.size(); ++i)
    if (schema.entries[i].feature == feature) return i;
  return std::nullopt;
}

// Welford's update; both ratios or neither, so that one count serves them.
void add_ratios(PhaseSummary& phase, double cpu, double memory) {
  phase.count += 1;
  const double cpu_away = cpu - phase.cpu_mean_ratio;
  phase.cpu_mean_ratio += cpu_away / phase.count;
  phase.cpu_m2 += cpu_away * (cpu - phase.cpu_mean_ratio);
  const double memory_away = memory - phase.memory_mean_ratio;
  phase.memory_mean_ratio += memory_away / phase.count;
  phase.memory_m2 += memory_away * (memory - phase.memory_mean_ratio);
}

double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

std::vector<PhaseSummary> summarise(const Model& model, const Dataset& data,
                                    std::span<const double> points) {
  const std::optional<std::size_t> cpu = position(model.schema, Feature::cpu_usage_ratio);
  const std::optional<std::size_t> memory = position(model.schema, Feature::memory_need_ratio);
  const auto dimension = static_cast<std::size_t>(model.centroids.dimension);
  std::vector<PhaseSummary> phases(static_cast<std::size_t>(model.centroids.count));
  std::vector<std::vector<double>> distances(phases.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    const NearestCentroid nearest =
        nearest_centroid(model.centroids, points.subspan(i * dimension, dimension));
    const auto phase = static_cast<std::size_t>(nearest.index);
    distances[phase].push_back(nearest.distance);
    const auto& values = data.steps[data.last_step[i]].values;
    if (cpu && memory && values[*cpu] && values[*memory])
      add_ratios(phases[phase], *values[*cpu], *values[*memory]);
  }
  for (std::size_t k = 0; k < phases.size(); ++k)
    phases[k].novelty_distance = quantile(distances[k], kNoveltyQuantile);
  return phases;
}

void tell_provenance(Model& model, const TrainOptions& options, std::span<const Trace> traces,
                     const Dataset& data, const CrbmFit& fit) {
  auto& told = model.provenance;
  told["program"] = "cgphase train " CGPHASE_VERSION;
  told["seed"] = fmt::format("{}", options.seed);
  told["options"] = fmt::format("clusters {} epochs {} learning-rate {}",
                                options.clusters == kAutomaticClusters
                                    ? "auto"
                                    : fmt::format("{}", options.clusters),
                                options.epochs, options.learning_rate);
  told["windows"] = fmt::format("{}", data.size());
  told["epochs"] = fmt::format("{}", fit.epochs);
  told["reconstruction_error"] =
      fmt::format("{:.6f} trained, {:.6f} held out", fit.error, fit.held_out_error);
  told["certified_share"] = fmt::format("{:.6f}", certified_share(model, data));
  told["inputs"] = fmt::format("{}", traces.size());
  for (std::size_t i = 0; i < std::min(traces.size(), kNamedInputs); ++i) {
    const std::string name = std::filesystem::path(traces[i].path).filename().string();
    told[fmt::format("input_{:02}", i + 1)] =
        fmt::format("{} crc32c {:08x}", escape_name(name.substr(0, kNameBytes)), traces[i].crc);
  }
}

}  // namespace

double certified_share(const Model& model, const Dataset& data) {
  const CrbmFixed fixed(model.crbm, model.centroids);
  std::vector<std::int16_t> window(static_cast<std::size_t>(fixed.window_size()));
  std::size_t certified = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const double* values = data.window(i);
    std::transform(values, values + window.size(), window.begin(), quantize_input);
    const double margin =
        std::ldexp(static_cast<double>(fixed.nearest(window).margin), -2 * kActivationShift);
    certified += margin > fixed.error_bound(window);
  }
  return data.size() > 0 ? static_cast<double>(certified) / static_cast<double>(data.size()) : 0;
}

Result<Model> train(const TrainOptions& options, std::span<const Trace> traces,
                    const std::function<void(const EpochReport&)>& progress) {
  if (Status status = check_options(options); !status) return std::unexpected(status.error());
  const Dataset data = make_dataset(traces, options.schema, options.step_seconds, options.history);
  if (Status status = check_size(data, options); !status) return std::unexpected(status.error());

  CrbmTraining training;
  training.hidden = options.hidden;
  training.max_epochs = options.epochs;
  training.learning_rate = options.learning_rate;
  training.seed = options.seed;
  const CrbmFit fit = fit_crbm(data, training, progress);

  Model model;
  model.schema = options.schema;
  model.step_seconds = options.step_seconds;
  model.scaler = data.scaler;
  model.crbm = fit.crbm;
  // From here on the float engine and the integers hold the same weights.
  snap_to_grid(model.crbm);
  const std::vector<double> points = activations(model.crbm, data);
  model.centroids = in_order(find_phases(points, options), data);
  snap_to_grid(model.centroids);
  model.phases = summarise(model, data, points);
  tell_provenance(model, options, traces, data, fit);
  if (Status status = check_model(model, "trained model"); !status)
    return std::unexpected(status.error());
  return model;
}

}  // namespace cgphase
