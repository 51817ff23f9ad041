// Finding phases in several ways on the same steps, and how well each agrees with the true ones:
// what the report on model quality is made of (docs/internals/lab.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"
#include "model/train/train.h"
#include "traces/trace.h"

namespace cgphase::workloads {

// What one model is made from, and what it is judged on. The datasets hold the same windows under
// two schemas; those for the test are scaled as those for training.
struct Fold {
  std::vector<Trace> training, test;  // read with ai4dl_columns()
  double step_seconds = 0;
  Dataset training_logs, test_logs;   // log_schema()
  Dataset training_raw, test_raw;     // plain_schema()
};
// Step and history are those of `options`.
Fold make_fold(std::vector<Trace> training, std::vector<Trace> test, const TrainOptions& options);
// To compare schemas, options.schema having all that any of them has: the test's steps are those of
// which all of it was measured, so that they are the same for all. Only test_logs is there of the
// datasets, and crbm_method() alone takes such a fold.
Fold make_fold_of_shared_steps(std::vector<Trace> training, std::vector<Trace> test,
                               const TrainOptions& options);
// The optional features, by name, of which these traces have steps, with all of log_schema().
std::vector<std::string> counted_features(const std::vector<Trace>& traces,
                                          const TrainOptions& options);
// log_schema() with these besides.
FeatureSchema log_schema_with(const std::vector<std::string>& optional);
// One fold per service: it is tested on, all others are trained on.
std::vector<Fold> leave_one_service_out(const std::vector<Trace>& traces,
                                        const TrainOptions& options);

// A phase per window of the fold's test. Errors: what training refuses.
using Labels = std::vector<int>;
using Method = std::function<Result<Labels>(const Fold&, std::uint64_t seed)>;

// Our model with these options; with a stickiness of 0 its nearest phases, with 0 epochs it is
// untrained.
Method crbm_method(const TrainOptions& options);
// k-means of the last step of each window, as standardised features. A `stickiness` above 0 puts
// our path over its distances, by the same rule (TrainOptions::stickiness).
enum class Features { raw, logs };
Method kmeans_method(Features features, int clusters, double stickiness = 0);
// gaussian_mixture.h of the same, in the logarithm.
Method mixture_method(int components);
// Segments of each execution (change_points.h), and k-means of their means, each as often as it
// has steps. It sees the whole execution before it tells the first phase.
Method change_point_method(int clusters);
// train_ai4dl() with the published settings, and the phases that the release would tell of the row
// that comes so many rows later: it tells that of a row from the rows before.
Method ai4dl_method(std::size_t later);

// Of one or more folds.
struct QualityScore {
  // Within a service: mutual information of phases and truth over the mean of their entropies, both
  // summed over all steps of all services, each among its own. Which job a step belongs to thus
  // gains nothing, and phases of different models are never taken for equal.
  double nmi_within = 0;
  double nmi_mean = 0, ari_mean = 0;  // of each service alone, and the plain mean
  double nmi_at_once = 0;             // of all steps of one fold; 0 where there are several
  double switches_per_hour = 0, median_dwell_seconds = 0;
  std::size_t services = 0;
};
// `labels` are one per fold, of any kind of phases; true phases are equal if their labels are, and
// if `by_service` those of different services never are.
QualityScore score_labels(const std::vector<Fold>& folds, const std::vector<Labels>& labels,
                          bool by_service);
// The true phases as if a method had found them.
Labels true_labels(const Fold& fold);

}  // namespace cgphase::workloads
