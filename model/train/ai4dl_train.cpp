#include "model/train/ai4dl_train.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "model/ai4dl.h"
#include "model/scaler.h"
#include "model/train/crbm_trainer.h"
#include "model/train/kmeans.h"
#include "model/train/random.h"
#include "model/train/train.h"

namespace cgphase {
namespace {

constexpr double kTelemetrySeconds = 15;

// All rows of all executions, standardised, and the start of each window.
struct Rows {
  Scaler scaler;
  std::vector<double> values;          // row-major [rows * n_vis]
  std::vector<std::size_t> windows;    // first row of each
};

Rows rows_of(std::span<const Trace> traces, int n_vis, int history) {
  Rows rows;
  std::vector<FeatureVector> vectors;
  for (const Trace& trace : traces)
    for (const Execution& execution : trace.executions)
      for (std::size_t i = 0; i < execution.rows.size(); ++i) {
        if (i >= static_cast<std::size_t>(history))
          rows.windows.push_back(vectors.size() - static_cast<std::size_t>(history));
        vectors.push_back({execution.rows[i].columns});
      }
  rows.scaler = fit_scaler(vectors, n_vis);
  for (const FeatureVector& vector : vectors)
    for (std::size_t f = 0; f < vector.values.size(); ++f)
      rows.values.push_back((vector.values[f].value_or(rows.scaler.mean[f]) -
                             rows.scaler.mean[f]) / rows.scaler.scale[f]);
  return rows;
}

// Weights are float32 between steps, as in the release.
template <class Matrix>
void step(Matrix& parameter, const Matrix& gradient, double rate) {
  parameter = (parameter + gradient * rate).template cast<float>().template cast<double>();
}

double run_epoch(Crbm& crbm, ContrastiveDivergence& divergence, const Rows& rows,
                 const std::vector<std::size_t>& order, double rate) {
  const auto n_vis = static_cast<std::size_t>(crbm.n_vis());
  CrbmGradient gradient(crbm);
  double error = 0;
  for (const std::size_t first : order) {
    const double* window = &rows.values[first * n_vis];
    gradient.set_zero();
    divergence.add(crbm, std::span(&window, 1), gradient, error);
    step(crbm.hidden_weights, gradient.hidden_weights, rate);
    step(crbm.history_weights, gradient.history_weights, rate);
    step(crbm.visible_bias, gradient.visible_bias, rate);
    step(crbm.hidden_bias, gradient.hidden_bias, rate);
  }
  return error / static_cast<double>(order.size());
}

Status check_options(const Ai4dlTraining& options, int n_vis) {
  const auto refuse = [](const std::string& what) { return failure(ErrorKind::invalid, what); };
  if (options.history < 0 || options.history > kMaxHistory)
    return refuse(fmt::format("history: {} is outside 0..{}", options.history, kMaxHistory));
  if (options.hidden < 1 || options.hidden > kMaxHidden)
    return refuse(fmt::format("hidden: {} is outside 1..{}", options.hidden, kMaxHidden));
  if (options.clusters < 1 || options.clusters > kMaxPhases)
    return refuse(fmt::format("clusters: {} is outside 1..{}", options.clusters, kMaxPhases));
  if (options.epochs < 0 || options.epochs > kMaxEpochs)
    return refuse(fmt::format("epochs: {} is outside 0..{}", options.epochs, kMaxEpochs));
  if (!(options.learning_rate > 0 && options.learning_rate <= 10))
    return refuse("learning rate: must be above 0 and at most 10");
  if (!options.initial) return {};
  const CrbmParameters& p = *options.initial;
  const auto vis = static_cast<std::size_t>(n_vis), hid = static_cast<std::size_t>(options.hidden);
  const std::size_t history = vis * static_cast<std::size_t>(options.history);
  const bool fits = p.w.size() == hid * vis && p.a.size() == vis * history &&
                    p.b.size() == hid * history && p.visible_bias.size() == vis &&
                    p.hidden_bias.size() == hid;
  if (!fits)
    return refuse(fmt::format("the initial weights do not fit {} features, {} hidden units and "
                              "a history of {}", n_vis, options.hidden, options.history));
  return {};
}

std::string name_of(std::span<const Trace> traces) {
  return traces.empty() ? "no traces" : traces.front().path;
}

// The release cannot train on a column without a single number.
Status check_columns(std::span<const Trace> traces) {
  const std::vector<std::string> columns = ai4dl_columns();
  const auto has_number = [&](std::size_t column) {
    for (const Trace& trace : traces)
      for (const Execution& execution : trace.executions)
        for (const TraceRow& row : execution.rows)
          if (row.columns[column]) return true;
    return false;
  };
  for (std::size_t column = 0; column < columns.size(); ++column)
    if (!has_number(column))
      return failure(ErrorKind::invalid,
                     fmt::format("{}: column {}: has no number in any row, and --compat trains on "
                                 "all {} of AI4DL's columns; without --compat it may be missing",
                                 name_of(traces), columns[column], columns.size()));
  return {};
}

void find_phases(const Ai4dlTraining& options, std::span<const Trace> traces, Model& model) {
  std::vector<double> points;
  for (const Trace& trace : traces)
    for (const Execution& execution : trace.executions) {
      const std::vector<double> more = ai4dl_activations(model, execution);
      points.insert(points.end(), more.begin(), more.end());
    }
  KMeansOptions kmeans_options;
  kmeans_options.clusters = options.clusters;
  kmeans_options.seed = options.seed;
  model.centroids = kmeans(points, model.crbm.n_hid, kmeans_options).centroids;
  model.phases.resize(static_cast<std::size_t>(model.centroids.count));
}

}  // namespace

std::vector<std::string> ai4dl_columns() {
  return {"cpu.usage",   "cpu.usage.cores", "cpu.usage.pct", "cpu.usage.pct.container.requested",
          "mem.current", "mem.limit",       "mem.usage.pct", "mem.working.set"};
}

Result<Model> train_ai4dl(const Ai4dlTraining& options, std::span<const Trace> traces,
                          const std::function<void(const EpochReport&)>& progress) {
  const auto n_vis = static_cast<int>(ai4dl_columns().size());
  if (Status status = check_options(options, n_vis); !status)
    return std::unexpected(status.error());
  const Rows rows = rows_of(traces, n_vis, options.history);
  if (rows.windows.empty())
    return failure(ErrorKind::invalid,
                   fmt::format("{}: no execution has the {} rows of a window", name_of(traces),
                               options.history + 1));
  if (Status status = check_columns(traces); !status) return std::unexpected(status.error());
  Random random(options.seed);
  CrbmParameters initial = options.initial.value_or(CrbmParameters{});
  if (!options.initial)
    initial = initial_parameters(n_vis, options.hidden, options.history, random);
  initial.n_vis = n_vis, initial.n_hid = options.hidden, initial.n_his = options.history;
  Crbm crbm(initial);
  ContrastiveDivergence divergence;
  std::vector<std::size_t> order = rows.windows;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    if (options.shuffle) random.shuffle(std::span(order));
    const double error = run_epoch(crbm, divergence, rows, order, options.learning_rate);
    if (progress) progress({epoch, error, error});
  }
  Model model;
  for (const std::string& column : ai4dl_columns())
    model.schema.entries.push_back({Feature::column, column});
  model.step_seconds = kTelemetrySeconds;
  model.scaler = rows.scaler;
  model.crbm = crbm.parameters();
  find_phases(options, traces, model);
  model.provenance["program"] = "cgphase train --compat " CGPHASE_VERSION;
  model.provenance["options"] =
      fmt::format("seed {} epochs {} learning-rate {}{}", options.seed, options.epochs,
                  options.learning_rate, options.shuffle ? "" : " in order");
  if (Status status = check_model(model, "trained model"); !status)
    return std::unexpected(status.error());
  return model;
}

}  // namespace cgphase
