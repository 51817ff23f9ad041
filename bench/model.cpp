// Cost of one online step and of one epoch of training, compared with AI4DL's Python (a
// transcription to numpy, bench/ai4dl_numpy.py) and with a naive C++ loop, in turns within one run.
// JSON lines; CPU time, medians over rounds (steps) and epochs (training).
//
//   bench_model [--rounds N] [--epochs N] [--trace TRACE.csv]...
//
// A step takes raw feature values and ends in a phase. Each engine does all that it needs: scaling,
// the window of the last steps, CRBM, nearest centroid. "includes" says what else it does. --trace:
// traces with AI4DL's eight columns to train on; without it a synthetic one like the public ones.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/model_training.h"
#include "model/centroids.h"
#include "model/crbm.h"
#include "model/crbm_fixed.h"
#include "model/phase_tracker.h"
#include "model/scaler.h"
#include "model/train/ai4dl_train.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"

namespace {

using namespace cgphase;

constexpr int kRows = 1000;         // per round
constexpr int kMadeUpRows = 2286;   // as many as in the larger public trace
constexpr int kNoPhase = -1;        // while the history is too short

double cpu_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Work {
  Model model;
  std::vector<FeatureVector> rows;
};

// Weights in float32, as in AI4DL.
Work make_work(const ExampleSize& size) {
  Work work{random_model(1, size, 0.3), {}};
  CrbmParameters& crbm = work.model.crbm;
  for (auto* values : {&crbm.w, &crbm.a, &crbm.b, &crbm.visible_bias, &crbm.hidden_bias})
    for (double& value : *values) value = static_cast<float>(value);
  Random random(2);
  for (int i = 0; i < kRows; ++i) {
    FeatureVector& row = work.rows.emplace_back();
    for (std::size_t f = 0; f < work.model.scaler.mean.size(); ++f)
      row.values.emplace_back(work.model.scaler.mean[f] +
                              work.model.scaler.scale[f] * random.normal());
  }
  return work;
}

// One way to get from a row to a phase.
struct Contestant {
  const char* name;
  const char* includes;
  std::function<int(const FeatureVector&)> step;
  std::vector<double> nanoseconds = {};
  std::vector<int> phases = {};

  void take_turn(const std::vector<FeatureVector>& rows) {
    phases.clear();
    const double begin = cpu_nanoseconds();
    for (const FeatureVector& row : rows) phases.push_back(step(row));
    nanoseconds.push_back((cpu_nanoseconds() - begin) / static_cast<double>(rows.size()));
  }
};

// The naive loop, with a new vector for every result.
class NaiveStep {
 public:
  explicit NaiveStep(const Model& model) : model_(model) {}
  int operator()(const FeatureVector& row) {
    std::vector<double> scaled;
    for (std::size_t f = 0; f < row.values.size(); ++f)
      scaled.push_back((*row.values[f] - model_.scaler.mean[f]) / model_.scaler.scale[f]);
    last_.push_back(scaled);
    if (static_cast<int>(last_.size()) <= model_.crbm.n_his) return kNoPhase;
    std::vector<double> history;
    for (std::size_t i = 0; i + 1 < last_.size(); ++i)
      history.insert(history.end(), last_[i].begin(), last_[i].end());
    const std::vector<double> hidden = naive::hidden(model_.crbm, scaled, history);
    last_.erase(last_.begin());
    return static_cast<int>(naive::nearest(model_.centroids, hidden).index);
  }

 private:
  const Model& model_;
  std::vector<std::vector<double>> last_;
};

// A window of the last steps. Value is the type that an engine needs.
template <class Value>
class Window {
 public:
  explicit Window(const Model& model)
      : model_(model), scaled_(model.scaler.mean.size()),
        values_(scaled_.size() * static_cast<std::size_t>(model.crbm.n_his + 1)) {}

  // False while it is not full.
  template <class Convert>
  bool push(const FeatureVector& row, Convert convert) {
    standardise(model_.scaler, row, scaled_);
    const auto n = static_cast<std::ptrdiff_t>(scaled_.size());
    std::shift_left(values_.begin(), values_.end(), n);
    std::transform(scaled_.begin(), scaled_.end(), values_.end() - n, convert);
    return ++steps_ > model_.crbm.n_his;
  }
  const std::vector<Value>& values() const { return values_; }

 private:
  const Model& model_;
  std::vector<double> scaled_;
  std::vector<Value> values_;
  int steps_ = 0;
};

class DoubleStep {
 public:
  explicit DoubleStep(const Model& model) : model_(model), crbm_(model.crbm), window_(model) {}
  int operator()(const FeatureVector& row) {
    if (!window_.push(row, [](double value) { return value; })) return kNoPhase;
    crbm_.hidden(window_.values().data(), hidden_);
    const auto size = static_cast<std::size_t>(hidden_.size());
    return nearest_centroid(model_.centroids, {hidden_.data(), size}).index;
  }

 private:
  const Model& model_;
  Crbm crbm_;
  Window<double> window_;
  Eigen::VectorXd hidden_;
};

class FixedStep {
 public:
  explicit FixedStep(const Model& model) : fixed_(model.crbm, model.centroids), window_(model) {}
  int operator()(const FeatureVector& row) {
    if (!window_.push(row, quantize_input)) return kNoPhase;
    return fixed_.nearest(window_.values()).index;
  }

 private:
  CrbmFixed fixed_;
  Window<std::int16_t> window_;
};

PhaseTracker make_tracker(Model model, double switch_cost) {
  model.switch_cost = switch_cost;
  const auto engine = PhaseEngine::create(std::move(model));
  if (!engine) std::exit(EXIT_FAILURE);
  return PhaseTracker(*engine);
}

nlohmann::json as_json(const Work& work) {
  nlohmann::json rows = nlohmann::json::array();
  for (const FeatureVector& row : work.rows) {
    nlohmann::json& values = rows.emplace_back(nlohmann::json::array());
    for (const auto& value : row.values) values.push_back(*value);
  }
  return {{"scaler", {{"mean", work.model.scaler.mean}, {"scale", work.model.scaler.scale}}},
          {"crbm", cgphase::as_json(work.model.crbm)},
          {"centroids", work.model.centroids.values},
          {"rows", std::move(rows)}};
}

// One turn of the Python process.
void ask(NumpyProcess& numpy, const char* command, Contestant& engine) {
  const nlohmann::json answer = numpy.ask(command);
  engine.nanoseconds.push_back(answer.at("ns_per_step"));
  engine.phases = answer.at("phases").get<std::vector<int>>();
}

double agreement(const Contestant& engine, const Contestant& reference) {
  // The Python returns no phase while the history is too short.
  const std::size_t skipped = reference.phases.size() - engine.phases.size();
  std::size_t same = 0;
  for (std::size_t i = 0; i < engine.phases.size(); ++i)
    same += engine.phases[i] == reference.phases[i + skipped];
  return static_cast<double>(same) / static_cast<double>(engine.phases.size());
}

void report(const char* label, const ExampleSize& size, const Contestant& engine,
            const std::vector<const Contestant*>& references, const Contestant& naive) {
  std::string ratios;
  for (const Contestant* reference : references) {
    char text[100];
    std::snprintf(text, sizeof text, "%s\"%s\":%.2f", ratios.empty() ? "" : ",", reference->name,
                  median(reference->nanoseconds) / median(engine.nanoseconds));
    ratios += text;
  }
  std::printf("{\"bench\":\"model\",\"what\":\"step\",\"model\":\"%s\",\"features\":%d,"
              "\"hidden\":%d,\"history\":%d,\"phases\":%d,\"engine\":\"%s\",\"includes\":\"%s\","
              "\"ns_per_step\":%.1f,\"same_phase_as_naive\":%.4f,\"times_faster_than\":{%s}}\n",
              label, size.features, size.hidden, size.history, size.phases, engine.name,
              engine.includes, median(engine.nanoseconds), agreement(engine, naive),
              ratios.c_str());
}

// `numpy` has received `work`, or is null.
void bench_steps(const char* label, const ExampleSize& size, const Work& work, int rounds,
                 NumpyProcess* numpy) {
  PhaseTracker tracker = make_tracker(work.model, 0);
  PhaseTracker path_tracker = make_tracker(work.model, 0.5);
  Contestant row{"ai4dl numpy", "one row at a time, as the release predicts", {}};
  Contestant batch{"numpy batch", "all rows in one call, so nothing that works online", {}};
  Contestant engines[] = {
      {"naive", "libm, a new vector for everything", NaiveStep(work.model)},
      {"double", "clamping and missing values", DoubleStep(work.model)},
      {"fixed", "clamping and missing values, integers", FixedStep(work.model)},
      {"tracker", "fixed, its error bound, novelty",
       [&](const FeatureVector& vector) { return tracker.step(vector).index; }},
      {"tracker, path", "tracker, and a price for changing the phase: what the daemon does",
       [&](const FeatureVector& vector) { return path_tracker.step(vector).index; }},
  };
  for (int round = 0; round < rounds; ++round) {
    if (numpy != nullptr) {
      ask(*numpy, "row", row);
      ask(*numpy, "batch", batch);
    }
    for (Contestant& engine : engines) engine.take_turn(work.rows);
  }
  const Contestant& naive = engines[0];
  std::vector<const Contestant*> references{&naive};
  if (numpy != nullptr) references.insert(references.begin(), {&row, &batch});
  for (const Contestant* reference : references) report(label, size, *reference, references, naive);
  for (const Contestant& engine : engines)
    if (&engine != &naive) report(label, size, engine, references, naive);
}

struct Options {
  int rounds = 31, epochs = 100;
  std::vector<Trace> traces;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) return false;
    const std::string_view value = argv[i + 1];
    if (name == "--trace") {
      Result<Trace> trace = read_trace(argv[i + 1], {.columns = ai4dl_columns()});
      if (!trace) std::fprintf(stderr, "bench_model: %s\n", trace.error().text.c_str());
      if (!trace) return false;
      options.traces.push_back(std::move(*trace));
      continue;
    }
    if (name != "--rounds" && name != "--epochs") return false;
    int& number = name == "--rounds" ? options.rounds : options.epochs;
    const auto [end, error] = std::from_chars(value.begin(), value.end(), number);
    if (error != std::errc() || end != value.end() || number < 2) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs("usage: bench_model [--rounds N] [--epochs N] [--trace TRACE.csv]...\n", stderr);
    return 2;
  }
  if (options.traces.empty()) options.traces.push_back(made_up_trace(kMadeUpRows));
  const TrainingTask training = training_task(std::move(options.traces));
  const ExampleSize published{8, 10, 3, 5}, wide{42, 48, 3, 5};
  const Work work = make_work(published);
  const auto numpy = NumpyProcess::start({{"step", as_json(work)}, {"train", as_json(training)}});
  if (numpy)
    std::printf("{\"bench\":\"model\",\"numpy\":\"%s\"}\n", numpy->version().c_str());
  else
    std::puts("{\"bench\":\"model\",\"numpy\":null,\"why\":\"/usr/bin/python3 has no numpy "
              "(Debian: python3-numpy); the naive loop alone is the reference\"}");
  bench_steps("8-10-3", published, work, options.rounds, numpy.get());
  bench_steps("42-48-3", wide, make_work(wide), options.rounds, nullptr);
  bench_training(training, options.epochs, numpy.get());
  return EXIT_SUCCESS;
}
