#include "tests/workloads/quality.h"

#include <doctest/doctest.h>

#include <map>

#include "model/feature_schema.h"
#include "model/train/ai4dl_train.h"
#include "tests/model/synthetic_trace.h"
#include "tests/workloads/default_model.h"

using namespace cgphase;
using namespace cgphase::workloads;

namespace {

TrainOptions quick() {
  TrainOptions options;
  options.step_seconds = 1;
  options.history = 1;
  options.clusters = 3;
  options.epochs = 25;
  return options;
}

Trace job(std::uint64_t seed, const std::string& service) {
  Trace trace = synthetic_trace(seed);
  trace.executions[0].service = service;
  return trace;
}

std::vector<Fold> one_fold() {
  return {make_fold({job(1, "a"), job(2, "a")}, {job(3, "a")}, quick())};
}

double nmi_of(const Method& method) {
  const std::vector<Fold> folds = one_fold();
  const Result<Labels> labels = method(folds[0], 1);
  REQUIRE(labels);
  REQUIRE(labels->size() == folds[0].test_logs.size());
  return score_labels(folds, {*labels}, false).nmi_within;
}

}  // namespace

TEST_CASE("quality: both schemas cut the same windows, and the test is scaled like the training") {
  const Fold fold = one_fold()[0];
  CHECK(fold.test_logs.size() > 300);
  CHECK(fold.test_logs.row == fold.test_raw.row);
  CHECK(fold.test_logs.scaler.mean == fold.training_logs.scaler.mean);
  CHECK(fold.test_raw.scaler.mean == fold.training_raw.scaler.mean);
  CHECK(fold.test_raw.scaler.mean != fold.test_logs.scaler.mean);
}

TEST_CASE("quality: every way finds the phases of made-up telemetry") {
  CHECK(nmi_of(crbm_method(quick())) > 0.85);
  CHECK(nmi_of(kmeans_method(Features::raw, 3)) > 0.85);
  CHECK(nmi_of(kmeans_method(Features::logs, 3)) > 0.85);
  CHECK(nmi_of(kmeans_method(Features::logs, 3, 5)) > 0.85);
  CHECK(nmi_of(mixture_method(3)) > 0.85);
  CHECK(nmi_of(change_point_method(3)) > 0.85);
}

// The columns of AI4DL, each a different mixture of memory and CPU.
Trace with_columns(Trace trace) {
  for (TraceRow& row : trace.executions[0].rows)
    for (std::size_t i = 0; i < ai4dl_columns().size(); ++i)
      row.columns.emplace_back(static_cast<double>(*row.sample.memory.anon_bytes >> i) +
                               static_cast<double>(*row.sample.cpu.usage_usec % (1000 + i)));
  return trace;
}

TEST_CASE("quality: AI4DL gives a phase for each step, or that of the next row") {
  const Fold fold = make_fold({with_columns(job(1, "a"))}, {with_columns(job(3, "a"))}, quick());
  const Result<Labels> told = ai4dl_method(0)(fold, 1), later = ai4dl_method(1)(fold, 1);
  REQUIRE(told);
  REQUIRE(later);
  const std::vector<std::size_t>& row = fold.test_logs.row;
  REQUIRE(told->size() == row.size());
  REQUIRE(later->size() == row.size());
  std::size_t followed = 0, moved = 0;
  for (std::size_t i = 0; i + 1 < row.size(); ++i) {
    if (row[i + 1] != row[i] + 1) continue;
    ++followed;
    moved += (*told)[i] != (*told)[i + 1];
    CHECK((*later)[i] == (*told)[i + 1]);
  }
  CHECK(followed > 300);
  CHECK(moved > 2);
}

TEST_CASE("quality: the path over k-means keeps a phase through single steps elsewhere") {
  std::vector<Trace> test{job(3, "a")};
  std::vector<TraceRow>& rows = test[0].executions[0].rows;
  for (std::size_t t = 0; t < rows.size(); ++t)
    if (t % 8 == 7) rows[t].sample.memory.anon_bytes = 520'000'000;
  const std::vector<Fold> folds{make_fold({job(1, "a"), job(2, "a")}, test, quick())};
  const auto switches = [&](double stickiness) {
    const Result<Labels> labels = kmeans_method(Features::logs, 3, stickiness)(folds[0], 1);
    REQUIRE(labels);
    return score_labels(folds, {*labels}, false).switches_per_hour;
  };
  CHECK(switches(100) < switches(0));
}

// A counter that grows by the same amount in each row. The first rows lack it.
Trace with_switches(Trace trace, std::size_t lacking) {
  std::vector<TraceRow>& rows = trace.executions[0].rows;
  for (std::size_t i = lacking; i < rows.size(); ++i)
    rows[i].sample.run_queue.voluntary_switches = 100 * i;
  return trace;
}

TEST_CASE("quality: schemas are compared at the steps that all of them can describe") {
  TrainOptions options = quick();
  options.schema = log_schema_with({"voluntary_switch_log_rate"});
  const std::vector<Trace> training{with_switches(job(1, "a"), 0)};
  const std::vector<Trace> test{with_switches(job(3, "a"), 50)};
  const Fold fold = make_fold_of_shared_steps(training, test, options);
  const std::vector<std::size_t>& row = fold.test_logs.row;
  REQUIRE_FALSE(row.empty());
  CHECK(row.front() == 50 + 2);  // a rate takes two rows, and a window here one step more
  const Result<Labels> six = crbm_method(quick())(fold, 1), seven = crbm_method(options)(fold, 1);
  REQUIRE(six);
  REQUIRE(seven);
  CHECK(six->size() == row.size());
  CHECK(seven->size() == row.size());
  // The six features describe more steps. On the shared steps the result is the same.
  const Fold whole = make_fold(training, test, quick());
  const Result<Labels> all = crbm_method(quick())(whole, 1);
  REQUIRE(all);
  std::map<std::size_t, int> told;
  for (std::size_t i = 0; i < all->size(); ++i) told[whole.test_logs.row[i]] = (*all)[i];
  CHECK(all->size() > six->size());
  for (std::size_t i = 0; i < row.size(); ++i) CHECK((*six)[i] == told[row[i]]);
}

TEST_CASE("quality: a feature counts as counted if traces have steps with it") {
  CHECK(counted_features({job(1, "a")}, quick()).empty());
  const std::vector<std::string> counted =
      counted_features({job(1, "a"), with_switches(job(2, "a"), 9)}, quick());
  CHECK(counted == std::vector<std::string>{"voluntary_switch_log_rate"});
}

TEST_CASE("quality: the recordings with counters have all that BPF programs count for features") {
  const std::string folder = CGPHASE_SOURCE_DIR "/tests/data/counters";
  for (const TraceSet set : {TraceSet::training, TraceSet::held_out}) {
    const auto traces = read_traces(folder, set);
    REQUIRE(traces.has_value());
    CHECK(counted_features(*traces, TrainOptions{}) ==
          std::vector<std::string>{"run_queue_wait_ratio", "voluntary_switch_log_rate",
                                   "involuntary_switch_log_rate", "network_receive_log_rate",
                                   "network_transmit_log_rate", "block_latency_log_usec"});
  }
}

TEST_CASE("quality: leaving one service out tests each service once and never trains on it") {
  const std::vector<Trace> traces{job(1, "a"), job(2, "b"), job(3, "a"), job(4, "c")};
  const std::vector<Fold> folds = leave_one_service_out(traces, quick());
  REQUIRE(folds.size() == 3);
  CHECK(folds[0].test.size() == 2);
  for (const Fold& fold : folds) {
    CHECK(fold.training.size() + fold.test.size() == 4);
    for (const Trace& trained : fold.training)
      CHECK(trained.executions[0].service != fold.test[0].executions[0].service);
  }
}

TEST_CASE("quality: the truth scores 1, under any numbers and in every fold") {
  const std::vector<Fold> folds =
      leave_one_service_out({job(1, "a"), job(2, "b"), job(3, "c")}, quick());
  std::vector<Labels> labels;
  for (const Fold& fold : folds) {
    labels.push_back(true_labels(fold));
    for (int& label : labels.back()) label = 7 * static_cast<int>(labels.size()) - label;
  }
  const QualityScore score = score_labels(folds, labels, false);
  CHECK(score.services == 3);
  CHECK(score.nmi_within == doctest::Approx(1));
  CHECK(score.nmi_mean == doctest::Approx(1));
  CHECK(score.ari_mean == doctest::Approx(1));
  CHECK(score.nmi_at_once == 0);
}

TEST_CASE("quality: a separate phase for each fold has no information within a service") {
  const std::vector<Fold> folds = leave_one_service_out({job(1, "a"), job(2, "b")}, quick());
  std::vector<Labels> labels;
  for (const Fold& fold : folds)
    labels.emplace_back(fold.test_logs.size(), static_cast<int>(labels.size()));
  const QualityScore score = score_labels(folds, labels, false);
  CHECK(score.nmi_within == doctest::Approx(0));
  CHECK(score.ari_mean == doctest::Approx(0));
}

TEST_CASE("quality: switches per hour and dwell times of the truth") {
  const std::vector<Fold> folds = one_fold();
  const QualityScore score = score_labels(folds, {true_labels(folds[0])}, false);
  // 358 windows of 1 s, phases of 40 s.
  CHECK(score.median_dwell_seconds == 40);
  CHECK(score.switches_per_hour == doctest::Approx(8 * 3600.0 / 358));
  CHECK(score.nmi_at_once == doctest::Approx(1));
}

TEST_CASE("quality: a refusal of the training is an error") {
  TrainOptions options = quick();
  options.clusters = kMaxPhases + 1;
  CHECK_FALSE(crbm_method(options)(one_fold()[0], 1).has_value());
}
