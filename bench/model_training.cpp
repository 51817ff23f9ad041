#include "bench/model_training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <utility>

#include "model/scaler.h"
#include "model/train/ai4dl_train.h"
#include "model/train/crbm_trainer.h"
#include "model/train/random.h"
#include "tests/model/naive_crbm.h"

namespace cgphase {
namespace {

constexpr int kHistory = 3, kHidden = 10;
constexpr double kLearningRate = 0.001;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// One entry per epoch: CPU time, and mean ||v - v1|| of the windows, each at its turn.
struct Course {
  std::vector<double> seconds, errors;
};

// Records the reports of a trainer.
class Recorder {
 public:
  explicit Recorder(Course& course) : course_(course), last_(cpu_seconds()) {}
  void operator()(const EpochReport& report) {
    const double now = cpu_seconds();
    course_.seconds.push_back(now - last_);
    course_.errors.push_back(report.error);
    last_ = cpu_seconds();
  }

 private:
  Course& course_;
  double last_;
};

void move(std::vector<double>& weights, std::size_t index, double gradient) {
  weights[index] = static_cast<float>(weights[index] + kLearningRate * gradient);
}

// CD-1 of one window exactly as in the formulas; returns its error.
double naive_step(CrbmParameters& p, const double* window) {
  const auto n_vis = static_cast<std::size_t>(p.n_vis);
  const std::size_t past = n_vis * static_cast<std::size_t>(p.n_his);
  const std::vector<double> c(window, window + past), v(window + past, window + past + n_vis);
  const std::vector<double> h0 = naive::hidden(p, v, c);
  const std::vector<double> v1 = naive::reconstruct(p, h0, c);
  const std::vector<double> h1 = naive::hidden(p, v1, c);
  double square = 0;
  for (std::size_t k = 0; k < h0.size(); ++k) {
    for (std::size_t i = 0; i < n_vis; ++i) move(p.w, k * n_vis + i, h0[k] * v[i] - h1[k] * v1[i]);
    for (std::size_t j = 0; j < past; ++j) move(p.b, k * past + j, (h0[k] - h1[k]) * c[j]);
    move(p.hidden_bias, k, h0[k] - h1[k]);
  }
  for (std::size_t i = 0; i < n_vis; ++i) {
    for (std::size_t j = 0; j < past; ++j) move(p.a, i * past + j, (v[i] - v1[i]) * c[j]);
    move(p.visible_bias, i, v[i] - v1[i]);
    square += (v[i] - v1[i]) * (v[i] - v1[i]);
  }
  return std::sqrt(square);
}

Course train_naively(const TrainingTask& task, int epochs) {
  Course course;
  CrbmParameters crbm = task.initial;
  Recorder record(course);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double error = 0;
    for (std::size_t i = 0; i < task.data.size(); ++i)
      error += naive_step(crbm, task.data.window(i));
    record({epoch, error / static_cast<double>(task.data.size()), 0});
  }
  return course;
}

Course train_as_released(const TrainingTask& task, int epochs) {
  Ai4dlTraining options;
  options.history = kHistory, options.hidden = kHidden, options.epochs = epochs;
  options.learning_rate = kLearningRate;
  options.initial = task.initial;
  options.shuffle = false;
  Course course;
  // The first epoch would include the work before it: reading rows, fitting the scaler.
  std::optional<Recorder> record;
  const Result<Model> model = train_ai4dl(options, task.traces, [&](const EpochReport& report) {
    if (record) {
      (*record)(report);
      return;
    }
    course.errors.push_back(report.error);
    record.emplace(course);
  });
  if (!model) std::exit(EXIT_FAILURE);
  return course;
}

Course train_in_batches(const TrainingTask& task, int epochs) {
  CrbmTraining options;
  options.hidden = kHidden;
  options.max_epochs = options.patience = epochs;
  Course course;
  fit_crbm(task.data, options, Recorder(course));
  return course;
}

Course train_in_numpy(NumpyProcess& numpy, int epochs) {
  const nlohmann::json answer = numpy.ask("train " + std::to_string(epochs));
  return {answer.at("seconds"), answer.at("errors")};
}

// The number of epochs until the error is at most `error`; 0 if it never is.
std::size_t epochs_until(const Course& course, double error) {
  const auto reached = std::ranges::find_if(course.errors, [&](double e) { return e <= error; });
  return reached == course.errors.end()
             ? 0
             : static_cast<std::size_t>(reached - course.errors.begin()) + 1;
}

}  // namespace

Trace made_up_trace(int rows) {
  Random random(3);
  Trace trace;
  trace.path = "made up";
  Execution& execution = trace.executions.emplace_back();
  double cpu = 0, memory = 0, cpu_level = 0, memory_level = 0;
  for (int i = 0; i < rows; ++i) {
    if (i % 40 == 0) cpu_level = random.uniform(), memory_level = random.uniform();
    cpu += 0.5 * (cpu_level - cpu) + 0.02 * random.normal();
    memory += 0.1 * (memory_level - memory) + 0.002 * random.normal();
    const double cores = 4 * std::max(cpu, 0.0);
    const double working_set = 8e9 * std::max(memory, 0.0);
    const double interval = 15 + 0.5 * random.normal();
    TraceRow row;
    row.columns = {cores * interval * 1e9, cores, cores / 8, cores / 4.096,
                   working_set * (1.1 + 0.01 * random.normal()), 10e9, working_set / 10e9,
                   working_set};
    execution.rows.push_back(std::move(row));
  }
  return trace;
}

TrainingTask training_task(std::vector<Trace> traces) {
  TrainingTask task;
  task.traces = std::move(traces);
  Dataset& data = task.data;
  data.features = static_cast<int>(ai4dl_columns().size());
  data.history = kHistory;
  for (const Trace& trace : task.traces)
    for (const Execution& execution : trace.executions)
      for (std::size_t row = 0; row < execution.rows.size(); ++row) {
        data.steps.push_back({execution.rows[row].columns});
        if (row < kHistory) continue;
        data.last_step.push_back(data.steps.size() - 1);
        data.execution.push_back(0);
        data.row.push_back(row);
      }
  data.scaler = fit_scaler(data.steps, data.features);
  for (const FeatureVector& step : data.steps)
    for (std::size_t f = 0; f < step.values.size(); ++f)
      data.standardised.push_back((step.values[f].value_or(data.scaler.mean[f]) -
                                   data.scaler.mean[f]) / data.scaler.scale[f]);
  Random random(4);
  CrbmParameters& p = task.initial;
  p.n_vis = data.features, p.n_hid = kHidden, p.n_his = kHistory;
  const int past = p.n_vis * p.n_his;
  for (auto [values, count] : {std::pair{&p.w, p.n_hid * p.n_vis}, std::pair{&p.a, p.n_vis * past},
                               std::pair{&p.b, p.n_hid * past}})
    for (int i = 0; i < count; ++i)
      values->push_back(static_cast<float>(random.normal() * 0.2 / past));
  p.visible_bias.assign(static_cast<std::size_t>(p.n_vis), 0);
  p.hidden_bias.assign(static_cast<std::size_t>(p.n_hid), 0);
  return task;
}

nlohmann::json as_json(const CrbmParameters& crbm) {
  return {{"n_vis", crbm.n_vis}, {"n_hid", crbm.n_hid},           {"n_his", crbm.n_his},
          {"W", crbm.w},         {"A", crbm.a},                   {"B", crbm.b},
          {"v_bias", crbm.visible_bias}, {"h_bias", crbm.hidden_bias}};
}

nlohmann::json as_json(const TrainingTask& task) {
  nlohmann::json windows = nlohmann::json::array();
  for (std::size_t i = 0; i < task.data.size(); ++i)
    windows.push_back(task.data.last_step[i] - kHistory);
  return {{"crbm", as_json(task.initial)}, {"rows", task.data.standardised},
          {"windows", windows}, {"learning_rate", kLearningRate}};
}

void bench_training(const TrainingTask& task, int epochs, NumpyProcess* numpy) {
  struct Trainer {
    const char* name;
    Course course;
  };
  std::vector<Trainer> trainers;
  if (numpy != nullptr) trainers.push_back({"ai4dl numpy", train_in_numpy(*numpy, epochs)});
  trainers.push_back({"naive", train_naively(task, epochs)});
  trainers.push_back({"one by one", train_as_released(task, epochs)});
  trainers.push_back({"mini-batch", train_in_batches(task, epochs)});
  const Course& reference = trainers.front().course;
  const double aim = reference.errors.back() * (1 + 1e-9);  // the sums are in another order
  for (const auto& [name, course] : trainers) {
    const double epoch = median_of(course.seconds);
    const std::size_t needed = epochs_until(course, aim);
    std::printf("{\"bench\":\"model\",\"what\":\"train\",\"engine\":\"%s\",\"windows\":%zu,"
                "\"epochs\":%d,\"us_per_epoch\":%.1f,\"ns_per_window\":%.1f,\"error\":%.6f,"
                "\"epochs_to_error_of_first\":%zu,\"seconds_to_error_of_first\":%.6f,"
                "\"times_faster_than\":{\"%s\":%.1f}}\n",
                name, task.data.size(), epochs, epoch * 1e6,
                epoch * 1e9 / static_cast<double>(task.data.size()), course.errors.back(), needed,
                epoch * static_cast<double>(needed), trainers.front().name,
                median_of(reference.seconds) / epoch);
  }
}

}  // namespace cgphase
