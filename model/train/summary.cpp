#include "model/train/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "model/centroids.h"

namespace cgphase {
namespace {

constexpr double kNoveltyQuantile = 0.99;

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

}  // namespace

Centroids in_order(const KMeansFit& fit, const Dataset& data,
                   std::span<const std::size_t> windows) {
  const auto count = static_cast<std::size_t>(fit.centroids.count);
  const auto dimension = static_cast<std::size_t>(fit.centroids.dimension);
  std::vector<double> sum(count, 0), members(count, 0);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto label = static_cast<std::size_t>(fit.labels[i]);
    const std::size_t step = data.last_step[windows[i]];
    sum[label] += data.standardised[step * static_cast<std::size_t>(data.features)];
    members[label] += 1;
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sum[a] * members[b] < sum[b] * members[a];
  });
  Centroids sorted{fit.centroids.count, fit.centroids.dimension, {}, {}};
  for (const std::size_t k : order)
    sorted.values.insert(sorted.values.end(), &fit.centroids.values[k * dimension],
                         &fit.centroids.values[k * dimension] + dimension);
  return sorted;
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

}  // namespace cgphase
