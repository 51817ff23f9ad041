#include "lab/replay/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "lab/replay/demand.h"
#include "model/ai4dl.h"
#include "model/bursts.h"
#include "model/trace_phases.h"

namespace cgphase {
namespace {

// NaN if nothing was measured, because that is not a demand of 0.
double mean_of(const Moments& moments) {
  return moments.count > 0 ? moments.mean : std::numeric_limits<double>::quiet_NaN();
}

double deviation_of(const Moments& moments) {
  return moments.count > 0 ? std::sqrt(moments.squares / moments.count) : 0;
}

struct PhaseMoments {
  Moments cpu, memory;
};

std::vector<PhaseMoments> measure(std::span<const Execution> training,
                                  const std::shared_ptr<const PhaseEngine>& engine, bool compat) {
  std::vector<PhaseMoments> moments(static_cast<std::size_t>(engine->model().centroids.count));
  for (const Execution& execution : training) {
    const auto phases = compat ? ai4dl_phases(engine->model(), execution)
                               : tracked_phases(engine, execution);
    const auto points = demand_of(execution, cadence_of(execution));
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!phases[i].known()) continue;
      PhaseMoments& phase = moments[static_cast<std::size_t>(phases[i].index)];
      if (points[i].cpu_cores) phase.cpu.add(*points[i].cpu_cores);
      if (points[i].memory_bytes) phase.memory.add(*points[i].memory_bytes);
    }
  }
  return moments;
}

PhaseStatistics relative(const PhaseSummary& summary) {
  if (!(summary.count > 0)) return {};
  return {.count = summary.count,
          .cpu_mean_cores = summary.cpu_mean_ratio,
          .cpu_deviation_cores = std::sqrt(summary.cpu_m2 / summary.count),
          .memory_mean_bytes = summary.memory_mean_ratio,
          .memory_deviation_bytes = std::sqrt(summary.memory_m2 / summary.count)};
}

}  // namespace

Result<TrainedStatistics> TrainedStatistics::create(
    std::span<const Execution> training, const std::shared_ptr<const PhaseEngine>& engine,
    bool compat) {
  TrainedStatistics trained;
  std::vector<PhaseStatistics> phases;
  if (!engine) return failure(ErrorKind::invalid, "needs a model");
  if (!training.empty()) {
    for (const PhaseMoments& phase : measure(training, engine, compat))
      phases.push_back({.count = std::max(phase.cpu.count, phase.memory.count),
                        .cpu_mean_cores = mean_of(phase.cpu),
                        .cpu_deviation_cores = deviation_of(phase.cpu),
                        .memory_mean_bytes = mean_of(phase.memory),
                        .memory_deviation_bytes = deviation_of(phase.memory)});
  } else {
    trained.relative_ = true;
    for (const PhaseSummary& summary : engine->model().phases)
      phases.push_back(relative(summary));
  }
  if (std::none_of(phases.begin(), phases.end(),
                   [](const PhaseStatistics& phase) { return phase.count > 0; }))
    return failure(ErrorKind::invalid,
                   "needs statistics of phases: give training traces (--train)");
  trained.phases_ = std::make_shared<const std::vector<PhaseStatistics>>(std::move(phases));
  return trained;
}

std::shared_ptr<const std::vector<PhaseStatistics>> TrainedStatistics::of(
    const Limits& original, const HostCapacity& host) const {
  if (!relative_) return phases_;
  // As in the features: shares of the limit, whatever the size of the host.
  const double cores = original.cpu_cores().value_or(Cores{host.cpu_cores}).value;
  const auto bytes = static_cast<double>(original.memory_bytes().value_or(host.memory).value);
  std::vector<PhaseStatistics> absolute = *phases_;
  for (PhaseStatistics& phase : absolute) {
    phase.cpu_mean_cores *= cores;
    phase.cpu_deviation_cores *= cores;
    phase.memory_mean_bytes *= bytes;
    phase.memory_deviation_bytes *= bytes;
  }
  return std::make_shared<const std::vector<PhaseStatistics>>(std::move(absolute));
}

}  // namespace cgphase
