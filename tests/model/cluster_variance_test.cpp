#include "model/train/cluster_variance.h"

#include <doctest/doctest.h>

#include "model/train/dataset.h"
#include "model/train/train.h"
#include "tests/model/synthetic_trace.h"

using namespace cgphase;

namespace {

Model quick_model(const Trace& trace) {
  TrainOptions options;
  options.step_seconds = 1;
  options.history = 3;
  options.hidden = 10;
  options.epochs = 20;
  options.clusters = kAutomaticClusters;
  Result<Model> model = train(options, std::span(&trace, 1));
  REQUIRE(model);
  return *std::move(model);
}

}  // namespace

TEST_CASE("more clusters have less inertia, and the elbow is that of train --clusters auto") {
  const Trace trace = synthetic_trace(1);
  const Model model = quick_model(trace);
  const auto variance = cluster_variance(model, make_dataset(std::span(&trace, 1), model));
  REQUIRE(variance);
  REQUIRE(variance->within.size() == std::size_t{kMostClusters});
  for (std::size_t k = 1; k < variance->within.size(); ++k)
    CHECK(variance->within[k] <= variance->within[k - 1]);
  CHECK(variance->elbow == model.centroids.count);
  CHECK(variance->windows == 356);
  CHECK(variance->stride == 1);
}

TEST_CASE("windows are scaled by the model's scaler for any trace") {
  const Trace trace = synthetic_trace(1);
  Model model = quick_model(trace);
  model.scaler.mean[0] += 1;
  const Dataset own = make_dataset(std::span(&trace, 1), model.schema, 1, model.crbm.n_his);
  const Dataset as_model = make_dataset(std::span(&trace, 1), model);
  REQUIRE(as_model.last_step == own.last_step);
  CHECK(as_model.scaler.mean == model.scaler.mean);
  CHECK(as_model.standardised[0] ==
        doctest::Approx(own.standardised[0] - 1 / model.scaler.scale[0]));
  CHECK(as_model.standardised[1] == own.standardised[1]);
}

TEST_CASE("only every stride-th window is clustered if there are many") {
  const Model model = quick_model(synthetic_trace(1));
  const Trace longer = synthetic_trace(2, 5100);
  const auto variance = cluster_variance(model, make_dataset(std::span(&longer, 1), model));
  REQUIRE(variance);
  CHECK(variance->windows == 5096);
  CHECK(variance->stride == 2);
}

TEST_CASE("too few windows are refused with their number") {
  const Model model = quick_model(synthetic_trace(1));
  const Trace brief = synthetic_trace(3, 23);
  const auto variance = cluster_variance(model, make_dataset(std::span(&brief, 1), model));
  REQUIRE_FALSE(variance);
  CHECK(variance.error().kind == ErrorKind::invalid);
  CHECK(variance.error().text.starts_with("the trace gives 19 windows of 4 steps of 1 s"));
  const Trace enough = synthetic_trace(3, 24);
  CHECK(cluster_variance(model, make_dataset(std::span(&enough, 1), model)));
}
