#include "model/train/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "model/scalar_math.h"
#include "model/train/decode.h"

namespace cgphase {
namespace {

constexpr double kNoveltyQuantile = 0.99;

std::optional<std::size_t> position(const FeatureSchema& schema, Feature feature) {
  for (std::size_t i = 0; i < schema.entries.size(); ++i)
    if (schema.entries[i].feature == feature) return i;
  return std::nullopt;
}

// The position of a ratio to the limit in a schema, linear or as a logarithm.
struct Ratio {
  std::size_t position = 0;
  bool in_logarithm = false;
  std::optional<double> of(const FeatureVector& step) const {
    const std::optional<double>& value = step.values[position];
    if (!value || !in_logarithm) return value;
    return portable_exp(*value) - kLogRatioFloor;
  }
};

std::optional<Ratio> find_ratio(const FeatureSchema& schema, Feature plain, Feature logarithm) {
  if (const auto found = position(schema, plain)) return Ratio{*found, false};
  if (const auto found = position(schema, logarithm)) return Ratio{*found, true};
  return std::nullopt;
}

// Welford's update. Both ratios are present or neither, so that one count serves both.
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
  const std::optional<Ratio> cpu =
      find_ratio(model.schema, Feature::cpu_usage_ratio, Feature::cpu_usage_log_ratio);
  const std::optional<Ratio> memory =
      find_ratio(model.schema, Feature::memory_need_ratio, Feature::memory_need_log_ratio);
  std::vector<PhaseSummary> phases(static_cast<std::size_t>(model.centroids.count));
  std::vector<std::vector<double>> distances(phases.size());
  const std::vector<NearestCentroid> decoded = decode_phases(model, data, points);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto phase = static_cast<std::size_t>(decoded[i].index);
    distances[phase].push_back(decoded[i].distance);
    const FeatureVector& step = data.steps[data.last_step[i]];
    if (!cpu || !memory) continue;
    const std::optional<double> cores = cpu->of(step), bytes = memory->of(step);
    if (cores && bytes) add_ratios(phases[phase], *cores, *bytes);
  }
  for (std::size_t k = 0; k < phases.size(); ++k)
    phases[k].novelty_distance = quantile(distances[k], kNoveltyQuantile);
  return phases;
}

}  // namespace cgphase
