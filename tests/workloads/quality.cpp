#include "tests/workloads/quality.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/feature_schema.h"
#include "tests/workloads/phase_score.h"

namespace cgphase::workloads {
namespace {

// A model that only defines how windows are cut and scaled.
Dataset as_trained(std::span<const Trace> traces, const Dataset& training,
                   const FeatureSchema& schema, const TrainOptions& options) {
  Model model;
  model.schema = schema;
  model.step_seconds = options.step_seconds;
  model.scaler = training.scaler;
  model.crbm.n_his = options.history;
  return make_dataset(traces, model);
}

// The execution and the row at the end of a window.
struct Place {
  const Execution& execution;
  const TraceRow& row;
};

std::vector<Place> places(const Fold& fold) {
  std::vector<const Execution*> executions;
  for (const Trace& trace : fold.test)
    for (const Execution& execution : trace.executions) executions.push_back(&execution);
  std::vector<Place> result;
  for (std::size_t i = 0; i < fold.test_logs.size(); ++i) {
    const Execution& execution = *executions[fold.test_logs.execution[i]];
    result.push_back({execution, execution.rows[fold.test_logs.row[i]]});
  }
  return result;
}

// Counts changes of the phase and their lengths. A step after a gap starts a new phase.
class Dwelling {
 public:
  void add(int phase, bool follows) {
    ++steps_;
    if (follows && phase == last_ && !runs_.empty()) {
      ++runs_.back();
    } else {
      if (follows) ++switches_;
      runs_.push_back(1);
    }
    last_ = phase;
  }
  void tell(double step_seconds, QualityScore& score) {
    if (runs_.empty()) return;
    score.switches_per_hour =
        static_cast<double>(switches_) * 3600 / (static_cast<double>(steps_) * step_seconds);
    const auto middle = runs_.begin() + static_cast<std::ptrdiff_t>(runs_.size() / 2);
    std::ranges::nth_element(runs_, middle);
    score.median_dwell_seconds = static_cast<double>(*middle) * step_seconds;
  }

 private:
  std::vector<std::size_t> runs_;
  std::size_t steps_ = 0, switches_ = 0;
  int last_ = -1;
};

}  // namespace

Fold make_fold(std::vector<Trace> training, std::vector<Trace> test, const TrainOptions& options) {
  Fold fold;
  fold.training = std::move(training);
  fold.test = std::move(test);
  fold.step_seconds = options.step_seconds;
  const auto fill = [&](const FeatureSchema& schema, Dataset& trained, Dataset& tested) {
    trained = make_dataset(fold.training, schema, options.step_seconds, options.history);
    tested = as_trained(fold.test, trained, schema, options);
  };
  fill(log_schema(), fold.training_logs, fold.test_logs);
  fill(plain_schema(), fold.training_raw, fold.test_raw);
  return fold;
}

Fold make_fold_of_shared_steps(std::vector<Trace> training, std::vector<Trace> test,
                               const TrainOptions& options) {
  Fold fold;
  fold.training = std::move(training);
  fold.test = std::move(test);
  fold.step_seconds = options.step_seconds;
  const Dataset trained =
      make_dataset(fold.training, options.schema, options.step_seconds, options.history);
  fold.test_logs = as_trained(fold.test, trained, options.schema, options);
  return fold;
}

std::vector<std::string> counted_features(const std::vector<Trace>& traces,
                                          const TrainOptions& options) {
  std::vector<std::string> counted;
  for (const std::string_view name : feature_names()) {
    if (!is_optional(*feature_by_name(name))) continue;
    const FeatureSchema schema = log_schema_with({std::string(name)});
    if (make_dataset(traces, schema, options.step_seconds, options.history).size() > 0)
      counted.emplace_back(name);
  }
  return counted;
}

FeatureSchema log_schema_with(const std::vector<std::string>& optional) {
  FeatureSchema schema = log_schema();
  for (const std::string& name : optional)
    schema.entries.push_back({*feature_by_name(name), name});
  return schema;
}

std::vector<Fold> leave_one_service_out(const std::vector<Trace>& traces,
                                        const TrainOptions& options) {
  std::set<std::string> services;
  const auto service = [](const Trace& trace) { return trace.executions.at(0).service; };
  for (const Trace& trace : traces) services.insert(service(trace));
  std::vector<Fold> folds;
  for (const std::string& left_out : services) {
    std::vector<Trace> training, test;
    for (const Trace& trace : traces)
      (service(trace) == left_out ? test : training).push_back(trace);
    folds.push_back(make_fold(std::move(training), std::move(test), options));
  }
  return folds;
}

QualityScore score_labels(const std::vector<Fold>& folds, const std::vector<Labels>& labels,
                          bool by_service) {
  QualityScore score;
  PhaseScore at_once;
  Dwelling dwelling;
  double information = 0, entropy = 0;
  for (std::size_t f = 0; f < folds.size(); ++f) {
    std::map<std::string, PhaseScore> services;
    const std::vector<Place> where = places(folds[f]);
    for (std::size_t i = 0; i < where.size(); ++i) {
      const std::string& service = where[i].execution.service;
      const std::string& truth = where[i].row.label;
      services[service].add(labels[f][i], truth);
      at_once.add(labels[f][i], by_service ? service + ":" + truth : truth);
      dwelling.add(labels[f][i], folds[f].test_logs.follows[i] != 0);
    }
    for (const auto& [service, one] : services) {
      information += one.information();
      entropy += one.mean_entropy();
      score.nmi_mean += one.nmi();
      score.ari_mean += one.ari();
      ++score.services;
    }
  }
  if (score.services == 0) return score;
  score.nmi_within = entropy > 0 ? information / entropy : 0;
  score.nmi_mean /= static_cast<double>(score.services);
  score.ari_mean /= static_cast<double>(score.services);
  if (folds.size() == 1) score.nmi_at_once = at_once.nmi();
  dwelling.tell(folds[0].step_seconds, score);
  return score;
}

Labels true_labels(const Fold& fold) {
  std::map<std::string, int> numbers;
  Labels labels;
  for (const Place& place : places(fold))
    labels.push_back(
        numbers.try_emplace(place.row.label, static_cast<int>(numbers.size())).first->second);
  return labels;
}

}  // namespace cgphase::workloads
