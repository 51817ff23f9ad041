// Prints everything between a trace and a phase, between traces and a model file, and between
// traces and a replay. The text shows every bit of a number. It must be equal on every processor.
//
//   same_bits MODEL.json TRACE.csv...      (uncompressed traces)
//
// compare.sh runs it built for this machine and for arm64, and compares the outputs.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lab/replay/replay.h"
#include "model/centroids.h"
#include "model/crbm.h"
#include "model/crbm_fixed.h"
#include "model/phase_tracker.h"
#include "model/scalar_math.h"
#include "model/trace_features.h"
#include "model/train/ai4dl_train.h"
#include "model/train/expand.h"
#include "model/train/train.h"
#include "policy/policy.h"
#include "tests/model/example_models.h"
#include "tests/model/synthetic_trace.h"

namespace {

using namespace cgphase;

constexpr int kWalkSteps = 2000;
constexpr int kEpochs = 12;
constexpr std::size_t kTracesToTrain = 4;

void print(const char* what, double value) {
  std::printf(" %s %016" PRIx64, what, std::bit_cast<std::uint64_t>(value));
}

void print(const Phase& phase) {
  std::printf(" %s %d", to_string(phase.state), phase.index);
  print("distance", phase.distance);
  print("margin", phase.margin);
}

template <class T>
T checked(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "same_bits: %s\n", result.error().text.c_str());
    std::exit(EXIT_FAILURE);
  }
  return std::move(*result);
}

void show_functions() {
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const double x = random.normal() * std::ldexp(1, i % 12 - 2);
    std::printf("functions");
    print("x", x);
    print("exp", portable_exp(x));
    print("log", portable_log(std::abs(x)));
    print("log1p", portable_log1p(x));
    print("sigmoid", portable_sigmoid(x));
    std::printf("\n");
  }
}

// Raw values that vary around the model's training data. Some are absent or absurd.
std::vector<FeatureVector> random_walk(const Model& model, std::uint64_t seed) {
  Random random(seed);
  const std::size_t features = model.scaler.mean.size();
  std::vector<double> place(features);
  std::vector<FeatureVector> walk;
  for (int step = 0; step < kWalkSteps; ++step) {
    FeatureVector& vector = walk.emplace_back();
    for (std::size_t i = 0; i < features; ++i) {
      place[i] = 0.95 * place[i] + 0.5 * random.normal();
      vector.values.emplace_back(model.scaler.mean[i] + place[i] * model.scaler.scale[i]);
      if (random.below(50) == 0) vector.values.back() = std::nullopt;
      if (random.below(200) == 0) vector.values.back() = std::numeric_limits<double>::infinity();
    }
  }
  return walk;
}

void show_tracked(const char* name, const Model& model, const std::vector<FeatureVector>& steps) {
  PhaseTracker tracker(checked(PhaseEngine::create(model)));
  for (const FeatureVector& step : steps) {
    std::printf("%s", name);
    for (const auto& value : step.values) print("", value.value_or(-1));
    print(tracker.step(step));
    std::printf("\n");
  }
}

// Activations, distances and margins of both engines.
void show_engines(const char* name, const Model& model, std::uint64_t seed) {
  Random random(seed);
  const Crbm crbm(model.crbm);
  const CrbmFixed fixed(model.crbm, model.centroids);
  const auto hidden = static_cast<std::size_t>(model.crbm.n_hid);
  std::vector<std::int16_t> integers(hidden);
  Eigen::VectorXd activation, visible;
  for (int i = 0; i < kWalkSteps; ++i) {
    const std::vector<double> window = random_window(random, model.crbm, 1 + i % 4);
    const std::vector<std::int16_t> quantized_window = quantized(window);
    fixed.hidden(quantized_window, integers.data());
    const CrbmFixed::Nearest nearest = fixed.nearest(quantized_window);
    std::printf("%s fixed %d %" PRId64 " %" PRId64, name, nearest.index, nearest.distance,
                nearest.margin);
    print("bound", fixed.error_bound(quantized_window));
    for (const std::int16_t value : integers) std::printf(" %d", value);
    crbm.hidden(window.data(), activation);
    crbm.reconstruct(window.data(), activation, visible);
    const NearestCentroid real = nearest_centroid(model.centroids, {activation.data(), hidden});
    std::printf(" double %d", real.index);
    print("distance", real.distance);
    print("margin", real.margin);
    for (const double value : activation) print("", value);
    for (const double value : visible) print("", value);
    std::printf("\n");
  }
}

void show_recording(const Model& model, const Trace& trace) {
  std::printf("%s crc %08x\n", trace.path.c_str(), static_cast<unsigned>(trace.crc));
  for (const Execution& execution : trace.executions) {
    std::vector<FeatureVector> steps;
    for (auto& step : extract_features(execution, model.schema, model.step_seconds))
      if (step.vector) steps.push_back(std::move(*step.vector));
    show_tracked(execution.id.c_str(), model, steps);
  }
}

// Whole model files, also of odd sizes that no vector width divides.
void show_training(std::span<const Trace> traces) {
  for (const auto& [hidden, history, clusters] : {std::tuple{20, 1, 6}, {10, 3, 5}, {7, 2, 0}}) {
    TrainOptions options;
    options.step_seconds = 1;
    options.hidden = hidden, options.history = history, options.clusters = clusters;
    options.epochs = kEpochs;
    const Model model = checked(train(options, traces));
    std::printf("%s\n", serialize_model(model).c_str());
    const Dataset data = make_dataset(traces, model);
    const PhaseSamples samples = assign_phases(model, data);
    SplitOptions split;
    split.phase = report_novelty(model, samples, split.seed).to_split;
    std::printf("%s\n", serialize_model(checked(split_phase(model, data, samples, split))).c_str());
  }
  Trace columns = synthetic_trace(3);
  for (TraceRow& row : columns.executions[0].rows)
    for (std::size_t i = 0; i < ai4dl_columns().size(); ++i)
      row.columns.emplace_back(static_cast<double>(*row.sample.memory.anon_bytes >> i) +
                               static_cast<double>(*row.sample.cpu.usage_usec % (1000 + i)));
  Ai4dlTraining released;
  released.epochs = kEpochs;
  std::printf("%s\n",
              serialize_model(checked(train_ai4dl(released, std::span(&columns, 1)))).c_str());
}

void print(const ReplaySums& sums) {
  for (const double value : {sums.seconds, sums.allocated, sums.oracle, sums.slack_seconds,
                             sums.overrun, sums.backlog_core_seconds, sums.throttled_seconds})
    print("", value);
  std::printf(" %" PRId64 " %" PRId64 " %" PRId64 "\n", sums.samples_over, sums.writes_up,
              sums.writes_down);
}

// Limits of every policy that can run: the baselines alone, ours with the safety rules. The older
// half is used for learning.
void show_replays(const Model& model, std::vector<Trace> traces) {
  ReplayInput input;
  input.engine = checked(PhaseEngine::create(model));
  for (std::size_t i = 0; i < traces.size(); ++i)
    for (Execution& execution : traces[i].executions)
      (2 * i < traces.size() ? input.training : input.executions).push_back(std::move(execution));
  ReplaySettings settings;
  settings.loop.enabled = true;
  for (const bool safety : {false, true})
    for (const std::string_view name : policy_names()) {
      settings.safety = safety;
      if (safety && name != "phase" && name != "proactive") continue;
      const auto result = replay(input, settings, {{std::string(name), {}}, 0.05}, false);
      std::printf("replay %s%s %s\n", std::string(name).c_str(), safety ? " rails" : "",
                  result ? "played" : result.error().text.c_str());
      if (!result) continue;
      for (const ExecutionResult& execution : result->executions) {
        std::printf("replay %08x cpu", static_cast<unsigned>(execution.crc));
        print(execution.cpu);
        std::printf("replay memory");
        print(execution.memory);
      }
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: same_bits MODEL.json TRACE.csv...\n", stderr);
    return 2;
  }
  show_functions();
  const Model model = checked(load_model(argv[1]));
  std::printf("%s\n", serialize_model(model).c_str());
  show_engines("model", model, 2);
  show_engines("wide", random_model(3, {42, 48, 3, 9}), 4);
  for (const std::uint64_t seed : {5, 6}) show_tracked("walk", model, random_walk(model, seed));
  std::vector<Trace> traces;
  for (int i = 2; i < argc; ++i) {
    traces.push_back(checked(read_trace(argv[i])));
    show_recording(model, traces.back());
  }
  show_training(std::span(traces).first(std::min(traces.size(), kTracesToTrain)));
  show_replays(model, std::move(traces));
  return EXIT_SUCCESS;
}
