#include "lab/replay/statistics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lab/replay/demand.h"
#include "model/trace_phases.h"
#include "tests/model/synthetic_trace.h"

using namespace cgphase;
using doctest::Approx;

namespace {

std::shared_ptr<const PhaseEngine> own_engine() {
  return PhaseEngine::create(
             load_model(CGPHASE_SOURCE_DIR "/model/default_model.json").value()).value();
}

}  // namespace

TEST_CASE("statistics of a phase are mean and deviation over all of its samples") {
  const auto engine = own_engine();
  const std::vector<Execution> training{synthetic_trace(1).executions[0],
                                        synthetic_trace(2).executions[0]};
  const auto trained = TrainedStatistics::create(training, engine, false).value();
  const auto phases = trained.of({}, {});
  std::vector<double> sum(phases->size()), squares(phases->size()), count(phases->size());
  for (const Execution& execution : training) {
    const auto tracked = tracked_phases(engine, execution);
    const auto points = demand_of(execution, 1);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!tracked[i].known() || !points[i].cpu_cores) continue;
      const auto phase = static_cast<std::size_t>(tracked[i].index);
      sum[phase] += *points[i].cpu_cores;
      squares[phase] += *points[i].cpu_cores * *points[i].cpu_cores;
      count[phase] += 1;
    }
  }
  int seen = 0;
  for (std::size_t i = 0; i < phases->size(); ++i) {
    if (count[i] < 2) continue;
    const double mean = sum[i] / count[i];
    CHECK((*phases)[i].cpu_mean_cores == Approx(mean));
    CHECK((*phases)[i].cpu_deviation_cores ==
          Approx(std::sqrt(squares[i] / count[i] - mean * mean)).epsilon(1e-6));
    seen += 1;
  }
  CHECK(seen >= 3);
}

TEST_CASE("a resource not measured in a phase has no mean instead of zero") {
  std::vector<Execution> training{synthetic_trace(1).executions[0]};
  for (TraceRow& row : training[0].rows) row.sample.memory.anon_bytes.reset();
  const auto trained = TrainedStatistics::create(training, own_engine(), false).value();
  const auto phases = trained.of({}, {});
  int seen = 0;
  for (const PhaseStatistics& phase : *phases) {
    CHECK(std::isnan(phase.memory_mean_bytes));
    if (!(phase.count > 0)) continue;
    CHECK(phase.cpu_mean_cores > 0);
    ++seen;
  }
  CHECK(seen > 0);
}

TEST_CASE("without training the model's own ratios are scaled to the container's limits") {
  const auto engine = own_engine();
  const auto trained = TrainedStatistics::create({}, engine, false).value();
  const Execution execution = synthetic_trace(1).executions[0];  // 2 cores, 1 GiB
  const auto phases = trained.of(execution.original, execution.host);
  for (std::size_t i = 0; i < phases->size(); ++i) {
    const PhaseSummary& summary = engine->model().phases[i];
    CHECK((*phases)[i].count == summary.count);
    CHECK((*phases)[i].cpu_mean_cores == Approx(2 * summary.cpu_mean_ratio));
    CHECK((*phases)[i].memory_mean_bytes ==
          Approx(static_cast<double>(kGiB) * summary.memory_mean_ratio));
  }
}

TEST_CASE("a model without statistics needs training traces") {
  Model model = own_engine()->model();
  for (PhaseSummary& phase : model.phases) phase = {};
  const auto engine = PhaseEngine::create(model).value();
  const auto refused = TrainedStatistics::create({}, engine, false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text.find("--train") != std::string::npos);
  CHECK_FALSE(TrainedStatistics::create({}, nullptr, false));
}
