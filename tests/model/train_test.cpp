#include "model/train/train.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "model/crbm_fixed.h"
#include "model/phase_tracker.h"
#include "model/trace_features.h"
#include "model/train/crbm_trainer.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"
#include "tests/model/synthetic_trace.h"
#include "tests/model/test_data.h"

using namespace cgphase;

namespace {

TrainOptions quick() {
  TrainOptions options;
  options.step_seconds = 1;
  options.history = 3;
  options.hidden = 10;
  options.stickiness = 5;
  options.clusters = 3;
  options.epochs = 25;
  return options;
}

std::vector<Trace> two_traces() { return {synthetic_trace(1), synthetic_trace(2)}; }

// All torch traces; empty if there are none.
std::vector<Trace> torch_traces() {
  std::vector<Trace> traces;
  for (const char* kind :
       {"cnn", "finetune", "gpt", "hpo", "loader", "pool", "rl", "rnn", "serve"}) {
    const std::string path = test_data("torch/" + std::string(kind) + "-a.csv");
    if (path.empty()) return {};
    Result<Trace> trace = read_trace(path);
    if (!trace) FAIL(trace.error().text);
    traces.push_back(std::move(*trace));
  }
  return traces;
}

}  // namespace

TEST_CASE("a gap or a step without any measurement ends a history") {
  Trace trace = synthetic_trace(1, 100);
  CHECK(make_dataset(std::span(&trace, 1), plain_schema(), 1, 3).size() == 96);
  trace.executions[0].rows.erase(trace.executions[0].rows.begin() + 50,
                                 trace.executions[0].rows.begin() + 60);
  // 90 rows make 88 steps in two histories, each of which loses its first three.
  CHECK(make_dataset(std::span(&trace, 1), plain_schema(), 1, 3).size() == 88 - 6);
}

TEST_CASE("no window spans two executions") {
  const std::vector<Trace> traces{synthetic_trace(1, 50), synthetic_trace(2, 50)};
  const Dataset data = make_dataset(traces, plain_schema(), 1, 3);
  CHECK(data.steps.size() == 98);
  CHECK(data.size() == 92);
  CHECK(data.execution.front() == 0);
  CHECK(data.execution.back() == 1);
  CHECK(data.row.front() == 4);
}

TEST_CASE("the same traces and seed give the same model bytes, another seed does not") {
  const std::vector<Trace> traces = two_traces();
  const Result<Model> first = train(quick(), traces);
  const Result<Model> second = train(quick(), traces);
  TrainOptions other = quick();
  other.seed = 2;
  const Result<Model> third = train(other, traces);
  REQUIRE(first);
  REQUIRE(second);
  REQUIRE(third);
  CHECK(serialize_model(*first) == serialize_model(*second));
  CHECK(serialize_model(*first) != serialize_model(*third));
}

TEST_CASE("a trained model finds the phases of synthetic telemetry in an unseen execution") {
  const Result<Model> model = train(quick(), two_traces());
  REQUIRE(model);
  CHECK(model->centroids.count == 3);
  PhaseTracker tracker(*PhaseEngine::create(*model));
  const Trace unseen = synthetic_trace(77);
  std::map<std::string, std::map<int, int>> seen;
  const auto steps = extract_features(unseen.executions[0], model->schema, model->step_seconds);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].gap) tracker.reset();
    if (!steps[i].vector) continue;
    const Phase phase = tracker.step(*steps[i].vector);
    if (phase.known()) ++seen[unseen.executions[0].rows[i].label][phase.index];
  }
  // Phases are numbered by rising CPU use: idle, load, compute. A change takes a few samples of 40.
  CHECK(seen["idle"][0] > 90);
  CHECK(seen["load"][1] > 90);
  CHECK(seen["compute"][2] > 90);
  CHECK(seen["idle"][2] == 0);
  CHECK(seen["compute"][0] == 0);
}

TEST_CASE("phase statistics describe the training samples relative to the limit") {
  const Result<Model> model = train(quick(), two_traces());
  REQUIRE(model);
  double count = 0;
  for (const PhaseSummary& phase : model->phases) count += phase.count;
  CHECK(count == 2 * 356);
  const PhaseSummary& compute = model->phases[2];
  CHECK(compute.cpu_mean_ratio == doctest::Approx(0.9).epsilon(0.05));
  CHECK(compute.memory_mean_ratio == doctest::Approx(700e6 / double{kGiB}).epsilon(0.05));
  CHECK(compute.novelty_distance > 0);
}

TEST_CASE("the switch cost is the stickiness times the mean squared distance, on the grid") {
  TrainOptions options = quick();
  options.stickiness = 3;
  const std::vector<Trace> traces = two_traces();
  const Result<Model> model = train(options, traces);
  REQUIRE(model);
  const Dataset data = make_dataset(traces, *model);
  const std::vector<double> points = activations(model->crbm, data);
  double sum = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::vector<double> point(&points[i * 10], &points[i * 10] + 10);
    sum += naive::nearest(model->centroids, point).distance;
  }
  CHECK(model->switch_cost > 0);
  CHECK(model->switch_cost == doctest::Approx(3 * sum / static_cast<double>(data.size())));
  const double on_grid = std::ldexp(model->switch_cost, 30);
  CHECK(on_grid == std::floor(on_grid));
  options.stickiness = 0;
  CHECK(train(options, traces)->switch_cost == 0);
}

TEST_CASE("phase statistics use the phases that the tracker finds") {
  TrainOptions options = quick();
  options.stickiness = 900;
  std::vector<Trace> traces = two_traces();
  traces[1].executions[0].rows.erase(traces[1].executions[0].rows.begin() + 100,
                                     traces[1].executions[0].rows.begin() + 108);
  const Result<Model> model = train(options, traces);
  REQUIRE(model);
  const auto engine = *PhaseEngine::create(*model);
  std::vector<double> counts(3, 0);
  int kept = 0;
  for (const Trace& trace : traces) {
    PhaseTracker tracker(engine);
    for (const auto& step : extract_features(trace.executions[0], model->schema, 1)) {
      if (step.gap) tracker.reset();
      if (!step.vector) continue;
      const Phase phase = tracker.step(*step.vector);
      kept += phase.margin < 0;
      if (phase.index >= 0) ++counts[static_cast<std::size_t>(phase.index)];
    }
  }
  CHECK(kept > 0);
  for (std::size_t k = 0; k < 3; ++k) CHECK(model->phases[k].count == counts[k]);
}

TEST_CASE("statistics of a model with log ratios are linear ratios") {
  TrainOptions plain = quick(), logs = quick();
  plain.clusters = logs.clusters = 1;
  logs.schema = log_schema();
  const Result<Model> of_plain = train(plain, two_traces());
  const Result<Model> of_logs = train(logs, two_traces());
  REQUIRE(of_plain);
  REQUIRE(of_logs);
  const PhaseSummary &expected = of_plain->phases[0], &phase = of_logs->phases[0];
  CHECK(phase.count == expected.count);
  CHECK(phase.cpu_mean_ratio == doctest::Approx(expected.cpu_mean_ratio));
  CHECK(phase.cpu_m2 == doctest::Approx(expected.cpu_m2));
  CHECK(phase.memory_mean_ratio == doctest::Approx(expected.memory_mean_ratio));
  CHECK(phase.memory_m2 == doctest::Approx(expected.memory_m2));
}

TEST_CASE("clusters auto finds the number of phases at the elbow") {
  TrainOptions options = quick();
  options.clusters = kAutomaticClusters;
  const Result<Model> model = train(options, two_traces());
  REQUIRE(model);
  CHECK(model->centroids.count >= 3);
  CHECK(model->centroids.count <= 4);
}

TEST_CASE("training reports its epochs and lowers the held-out error") {
  std::vector<EpochReport> reports;
  REQUIRE(train(quick(), two_traces(), [&](const EpochReport& r) { reports.push_back(r); }));
  REQUIRE(reports.size() > 5);
  CHECK(reports.front().epoch == 1);
  CHECK(reports.back().held_out_error < reports.front().held_out_error);
}

TEST_CASE("training stops early if the held-out error no longer falls") {
  TrainOptions options = quick();
  options.epochs = kMaxEpochs;
  options.learning_rate = 0.1;
  int epochs = 0;
  const std::vector<Trace> traces{synthetic_trace(1, 200)};
  REQUIRE(train(options, traces, [&](const EpochReport&) { ++epochs; }));
  CHECK(epochs < 20'000);
}

TEST_CASE("a diverging learning rate still ends in a finite model") {
  TrainOptions options = quick();
  options.learning_rate = 10;
  const Result<Model> model = train(options, two_traces());
  REQUIRE(model);
  CHECK(check_model(*model, "m"));
}

TEST_CASE("absent features do not make the training fail") {
  std::vector<Trace> traces = two_traces();
  for (Trace& trace : traces)
    for (std::size_t i = 0; i < trace.executions[0].rows.size(); i += 7)
      trace.executions[0].rows[i].sample.memory = {};
  const Result<Model> model = train(quick(), traces);
  REQUIRE(model);
  CHECK(check_model(*model, "m"));
}

TEST_CASE("too few windows are refused with the required number") {
  const std::vector<Trace> traces{synthetic_trace(1, 20)};
  const Result<Model> model = train(quick(), traces);
  REQUIRE(!model);
  CHECK(model.error().kind == ErrorKind::invalid);
  CHECK(model.error().text.find("at least 20 are needed") != std::string::npos);
  const std::vector<Trace> enough{synthetic_trace(1, 24)};
  CHECK(train(quick(), enough));
  const std::vector<Trace> one_less{synthetic_trace(1, 23)};
  CHECK(!train(quick(), one_less));
}

TEST_CASE("options beyond their bounds are refused") {
  const auto trains = [](const std::function<void(TrainOptions&)>& edit) {
    TrainOptions options = quick();
    options.epochs = 0;
    edit(options);
    return train(options, two_traces()).has_value();
  };
  CHECK(trains([](TrainOptions&) {}));
  CHECK(!trains([](TrainOptions& o) { o.hidden = 0; }));
  CHECK(!trains([](TrainOptions& o) { o.hidden = kMaxHidden + 1; }));
  CHECK(trains([](TrainOptions& o) { o.history = 0; }));
  CHECK(!trains([](TrainOptions& o) { o.history = kMaxHistory + 1; }));
  CHECK(trains([](TrainOptions& o) { o.clusters = kMaxPhases; }));
  CHECK(!trains([](TrainOptions& o) { o.clusters = kMaxPhases + 1; }));
  CHECK(!trains([](TrainOptions& o) { o.epochs = kMaxEpochs + 1; }));
  CHECK(!trains([](TrainOptions& o) { o.learning_rate = 0; }));
  CHECK(trains([](TrainOptions& o) { o.batch = kMaxBatch; }));
  CHECK(!trains([](TrainOptions& o) { o.batch = kMaxBatch + 1; }));
  CHECK(!trains([](TrainOptions& o) { o.batch = 0; }));
  CHECK(trains([](TrainOptions& o) { o.momentum = 0; }));
  CHECK(!trains([](TrainOptions& o) { o.momentum = 1; }));
  CHECK(!trains([](TrainOptions& o) { o.step_seconds = 0; }));
  CHECK(trains([](TrainOptions& o) { o.stickiness = kMaxStickiness; }));
  CHECK(!trains([](TrainOptions& o) { o.stickiness = std::nextafter(kMaxStickiness, HUGE_VAL); }));
  CHECK(!trains([](TrainOptions& o) { o.stickiness = -1; }));
}

TEST_CASE("fixed point and the naive loop agree on real traces, always if certified") {
  const std::vector<Trace> traces = torch_traces();
  if (traces.empty()) return;
  TrainOptions options;
  options.step_seconds = 1;
  options.history = 3;
  options.hidden = 10;
  options.clusters = 5;
  options.epochs = 40;
  const Result<Model> model = train(options, traces);
  REQUIRE(model);
  const Dataset data = make_dataset(traces, model->schema, 1, options.history);
  const CrbmFixed fixed(model->crbm, model->centroids);
  std::size_t agreed = 0, certified = 0, violations = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::vector<double> window(data.window(i), data.window(i) + 24);
    const naive::Nearest expected = naive::nearest(
        model->centroids, naive::hidden(model->crbm, {window.end() - 6, window.end()},
                                        {window.begin(), window.end() - 6}));
    const std::vector<std::int16_t> integers = quantized(window);
    const CrbmFixed::Nearest found = fixed.nearest(integers);
    const bool same = found.index == static_cast<int>(expected.index);
    const bool sure = std::ldexp(static_cast<double>(found.margin), -2 * kActivationShift) >
                      fixed.error_bound(integers);
    agreed += same, certified += sure, violations += sure && !same;
  }
  MESSAGE("windows " << data.size() << ", agreed " << agreed << ", certified " << certified);
  CHECK(violations == 0);
  CHECK(agreed * 1000 >= data.size() * 999);
  CHECK(certified * 10 >= data.size() * 9);
}
