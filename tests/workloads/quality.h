// Finds phases in several ways on the same steps, and scores how well each agrees with the true
// ones. The report on model quality is made of these scores (docs/internals/lab.md).
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

// The training data of one model and its test data. The datasets have the same windows under two
// schemas. The test is scaled like the training.
struct Fold {
  std::vector<Trace> training, test;  // read with ai4dl_columns()
  double step_seconds = 0;
  Dataset training_logs, test_logs;   // log_schema()
  Dataset training_raw, test_raw;     // plain_schema()
};
// Step and history are those of `options`.
Fold make_fold(std::vector<Trace> training, std::vector<Trace> test, const TrainOptions& options);
// For comparing schemas; options.schema has everything that any of them has. The test's steps are
// those for which all of it was measured, so that they are the same for all. Only test_logs is set
// among the datasets, and only crbm_method() accepts such a fold.
Fold make_fold_of_shared_steps(std::vector<Trace> training, std::vector<Trace> test,
                               const TrainOptions& options);
// The names of the optional features of which these traces have steps together with all of
// log_schema().
std::vector<std::string> counted_features(const std::vector<Trace>& traces,
                                          const TrainOptions& options);
// log_schema() plus these features.
FeatureSchema log_schema_with(const std::vector<std::string>& optional);
// One fold per service: the service is the test, all others are the training.
std::vector<Fold> leave_one_service_out(const std::vector<Trace>& traces,
                                        const TrainOptions& options);

// One phase per window of the fold's test. Errors: those of the training.
using Labels = std::vector<int>;
using Method = std::function<Result<Labels>(const Fold&, std::uint64_t seed)>;

// Our model with these options. With a stickiness of 0 it uses its nearest phases; with 0 epochs it
// is untrained.
Method crbm_method(const TrainOptions& options);
// k-means of the last step of each window, as standardised features. A `stickiness` above 0 puts
// our path over its distances, by the same rule (TrainOptions::stickiness).
enum class Features { raw, logs };
Method kmeans_method(Features features, int clusters, double stickiness = 0);
// gaussian_mixture.h on the same steps, with logarithmic features.
Method mixture_method(int components);
// Segments of each execution (change_points.h), then k-means of their means, each weighted by its
// steps. It sees the whole execution before it reports the first phase.
Method change_point_method(int clusters);
// train_ai4dl() with the published settings. The release derives the phase of a row from the rows
// before it; `later` shifts the comparison by that many rows.
Method ai4dl_method(std::size_t later);

// The score of one or more folds.
struct QualityScore {
  // Within a service: mutual information of phases and truth over the mean of their entropies. Both
  // are summed over all steps of all services, each among its own. So knowing which job a step
  // belongs to gains nothing, and phases of different models are never treated as equal.
  double nmi_within = 0;
  double nmi_mean = 0, ari_mean = 0;  // of each service alone, then the plain mean
  double nmi_at_once = 0;             // of all steps of one fold; 0 if there are several
  double switches_per_hour = 0, median_dwell_seconds = 0;
  std::size_t services = 0;
};
// `labels` has one entry per fold, with any kind of phases. True phases are equal if their labels
// are; with `by_service` those of different services never are.
QualityScore score_labels(const std::vector<Fold>& folds, const std::vector<Labels>& labels,
                          bool by_service);
// The true phases, as if a method had found them.
Labels true_labels(const Fold& fold);

}  // namespace cgphase::workloads
