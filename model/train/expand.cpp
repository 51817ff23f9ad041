#include "model/train/expand.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/crbm_fixed.h"
#include "model/train/crbm_trainer.h"
#include "model/train/decode.h"
#include "model/train/kmeans.h"
#include "model/train/summary.h"

namespace cgphase {
namespace {

std::vector<std::size_t> windows_of(const PhaseSamples& samples, int phase) {
  std::vector<std::size_t> windows;
  for (std::size_t i = 0; i < samples.phases.size(); ++i)
    if (samples.phases[i] == phase) windows.push_back(i);
  return windows;
}

std::vector<double> points_of(const PhaseSamples& samples, std::span<const std::size_t> windows,
                              std::size_t dimension) {
  std::vector<double> points;
  points.reserve(windows.size() * dimension);
  for (const std::size_t window : windows) {
    const auto* row = &samples.activations[window * dimension];
    points.insert(points.end(), row, row + dimension);
  }
  return points;
}

KMeansFit part(std::span<const double> points, int dimension, int clusters, std::uint64_t seed) {
  KMeansOptions options;
  options.clusters = clusters;
  options.seed = seed;
  return kmeans(points, dimension, options);
}

Status check_split(const Model& model, const SplitOptions& options, std::size_t samples) {
  const int count = model.centroids.count;
  const auto refuse = [&](std::string why) {
    return failure(ErrorKind::invalid, fmt::format("phase {}: {}", options.phase, why));
  };
  if (options.phase < 0 || options.phase >= count)
    return refuse(fmt::format("the model has phases 0..{}", count - 1));
  if (std::ranges::find(model.centroids.parents, options.phase) != model.centroids.parents.end())
    return refuse("was already split; split one of its parts");
  if (options.clusters < 2 || count + options.clusters > kMaxPhases)
    return refuse(fmt::format("cannot be split into {}: 2 or more are needed, and a model has at "
                              "most {} phases, parts and split ones together",
                              options.clusters, kMaxPhases));
  const std::size_t needed =
      std::max(kFewestToSplit, 2 * static_cast<std::size_t>(options.clusters));
  if (samples < needed)
    return refuse(fmt::format("{} samples of these traces belong to it, at least {} are needed",
                              samples, needed));
  return {};
}

}  // namespace

PhaseSamples assign_phases(const Model& model, const Dataset& data) {
  PhaseSamples samples;
  samples.activations = activations(model.crbm, data);
  for (const NearestCentroid& found : decode_phases(model, data, samples.activations)) {
    samples.phases.push_back(found.index);
    samples.distances.push_back(found.distance);
  }
  return samples;
}

NoveltyReport report_novelty(const Model& model, const PhaseSamples& samples,
                             std::uint64_t seed) {
  NoveltyReport report;
  report.samples = samples.phases.size();
  report.phases.resize(model.phases.size());
  for (std::size_t i = 0; i < samples.phases.size(); ++i) {
    const auto phase = static_cast<std::size_t>(samples.phases[i]);
    const double bound = model.phases[phase].novelty_distance;
    const bool novel = bound > 0 && samples.distances[i] > bound;
    report.bounds_known |= bound > 0;
    report.novel += novel;
    report.phases[phase].novel += novel;
    report.phases[phase].samples += 1;
    report.phases[phase].inertia += samples.distances[i];
  }
  const auto dimension = static_cast<std::size_t>(model.centroids.dimension);
  for (std::size_t k = 0; k < report.phases.size(); ++k) {
    PhaseFit& fit = report.phases[k];
    if (fit.samples < kFewestToSplit) continue;
    const std::vector<std::size_t> windows = windows_of(samples, static_cast<int>(k));
    const std::vector<double> points = points_of(samples, windows, dimension);
    fit.split_gain =
        std::max(0.0, fit.inertia - part(points, model.centroids.dimension, 2, seed).inertia);
    if (report.to_split < 0 ||
        fit.split_gain > report.phases[static_cast<std::size_t>(report.to_split)].split_gain)
      report.to_split = static_cast<int>(k);
  }
  return report;
}

Result<Model> split_phase(const Model& model, const Dataset& data, const PhaseSamples& samples,
                          const SplitOptions& options) {
  const std::vector<std::size_t> windows = windows_of(samples, options.phase);
  if (Status status = check_split(model, options, windows.size()); !status)
    return std::unexpected(status.error());
  const auto dimension = static_cast<std::size_t>(model.centroids.dimension);
  const std::vector<double> points = points_of(samples, windows, dimension);
  const KMeansFit fit =
      part(points, model.centroids.dimension, options.clusters, options.seed);
  if (fit.centroids.count < options.clusters)
    return failure(ErrorKind::invalid,
                   fmt::format("phase {}: its {} samples have only {} different values",
                               options.phase, windows.size(), fit.centroids.count));
  Centroids parts = in_order(fit, data, windows);
  snap_to_grid(parts);

  Model split = model;
  const auto before = static_cast<std::size_t>(model.centroids.count);
  split.centroids.parents.resize(before, -1);
  split.centroids.parents.resize(before + static_cast<std::size_t>(parts.count), options.phase);
  split.centroids.count += parts.count;
  split.centroids.values.insert(split.centroids.values.end(), parts.values.begin(),
                                parts.values.end());
  const std::vector<PhaseSummary> summaries = summarise(split, data, samples.activations);
  split.phases.insert(split.phases.end(),
                      summaries.begin() + static_cast<std::ptrdiff_t>(before), summaries.end());
  split.provenance[fmt::format("split_{:02}", options.phase)] =
      fmt::format("cgphase expand: into {} of {} samples, seed {}", parts.count, windows.size(),
                  options.seed);
  if (Status status = check_model(split, "split model"); !status)
    return std::unexpected(status.error());
  return split;
}

}  // namespace cgphase
