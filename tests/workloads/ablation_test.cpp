#include "tests/workloads/ablation.h"

#include <doctest/doctest.h>

#include <set>

#include "model/phase_tracker.h"
#include "model/trace_phases.h"
#include "model/train/train.h"
#include "tests/model/synthetic_trace.h"

using namespace cgphase;
using namespace cgphase::workloads;

namespace {

std::set<int> phases_of(Model model, const Trace& trace) {
  const auto engine = PhaseEngine::create(std::move(model)).value();
  std::set<int> seen;
  for (const Phase& phase : tracked_phases(engine, trace.executions[0]))
    if (phase.known()) seen.insert(phase.index);
  return seen;
}

}  // namespace

TEST_CASE("a model of raw features distinguishes different phases") {
  const std::vector<Trace> traces{synthetic_trace(1, 600)};
  const Model model = raw_model(traces).value();
  CHECK(model.centroids.count == TrainOptions{}.clusters);
  CHECK(model.crbm.n_hid == model.crbm.n_vis);
  CHECK(phases_of(model, traces[0]).size() >= 3);
}

TEST_CASE("one phase for everything is one phase") {
  const std::vector<Trace> traces{synthetic_trace(1, 600)};
  CHECK(phases_of(one_phase_model(traces).value(), traces[0]) == std::set<int>{0});
}

TEST_CASE("an untrained model has other weights than a trained one, and as many phases") {
  const std::vector<Trace> traces{synthetic_trace(1, 600)};
  TrainOptions options;
  options.epochs = 5;
  const Model trained = train(options, traces).value();
  const Model untrained = untrained_model(traces).value();
  CHECK(untrained.crbm.w != trained.crbm.w);
  CHECK(untrained.centroids.count == trained.centroids.count);
}

TEST_CASE("another seed gives another model of the same shape") {
  const std::vector<Trace> traces{synthetic_trace(1, 200)};
  const Model one = reseeded_model(traces, 1).value(), two = reseeded_model(traces, 2).value();
  CHECK(one.crbm.w != two.crbm.w);
  CHECK(one.crbm.w.size() == two.crbm.w.size());
}
