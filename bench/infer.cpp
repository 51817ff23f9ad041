// What one model step costs: the naive loop, the double engine, the fixed-point engine, the tracker
// of a container without and with a price for changing the phase. JSON lines:
// per model size and engine the median nanoseconds per step and the ratio to the naive loop.
//
//   bench_infer [rounds]      (default 51 rounds, the engines take turns within each)
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "model/centroids.h"
#include "model/crbm.h"
#include "model/crbm_fixed.h"
#include "model/phase_tracker.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"

namespace {

using namespace cgphase;
using SteadyClock = std::chrono::steady_clock;

constexpr int kWindows = 64;

struct Engine {
  const char* name;
  std::function<int(int)> step;  // the phase of window i
  std::vector<double> nanoseconds;
};

// Nanoseconds per step over enough steps for the clock.
double measure(const Engine& engine, int steps, long& sink) {
  const auto begin = SteadyClock::now();
  for (int i = 0; i < steps; ++i) sink += engine.step(i % kWindows);
  const std::chrono::duration<double, std::nano> taken = SteadyClock::now() - begin;
  return taken.count() / steps;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void run(const char* label, const ExampleSize& size, int rounds) {
  const Model model = random_model(1, size, 0.3);
  Random random(2);
  std::vector<std::vector<double>> windows;
  std::vector<std::vector<std::int16_t>> integers;
  std::vector<FeatureVector> vectors;
  for (int i = 0; i < kWindows; ++i) {
    windows.push_back(random_window(random, model.crbm));
    integers.push_back(quantized(windows.back()));
    vectors.emplace_back().values.assign(windows.back().end() - size.features,
                                         windows.back().end());
  }
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const Crbm crbm(model.crbm);
  const CrbmFixed fixed(model.crbm, model.centroids);
  const auto engine = PhaseEngine::create(model);
  if (!engine) std::exit(EXIT_FAILURE);
  PhaseTracker tracker(*engine);
  Model sticky = model;
  sticky.switch_cost = 0.5;
  const auto sticky_engine = PhaseEngine::create(sticky);
  if (!sticky_engine) std::exit(EXIT_FAILURE);
  PhaseTracker path_tracker(*sticky_engine);
  Eigen::VectorXd activation;
  Engine engines[] = {
      {"naive",
       [&](int i) {
         const std::vector<double>& w = windows[at(i)];
         const std::vector<double> past(w.begin(), w.end() - size.features);
         const std::vector<double> present(w.end() - size.features, w.end());
         return static_cast<int>(
             naive::nearest(model.centroids, naive::hidden(model.crbm, present, past)).index);
       },
       {}},
      {"double",
       [&](int i) {
         crbm.hidden(windows[at(i)].data(), activation);
         return nearest_centroid(model.centroids, {activation.data(), at(size.hidden)}).index;
       },
       {}},
      {"fixed", [&](int i) { return fixed.nearest(integers[at(i)]).index; }, {}},
      {"tracker", [&](int i) { return tracker.step(vectors[at(i)]).index; }, {}},
      {"tracker, path", [&](int i) { return path_tracker.step(vectors[at(i)]).index; }, {}},
  };
  long sink = 0;
  const int steps = std::max(200, 20'000'000 / (size.hidden * fixed.window_size() * 20));
  for (int round = 0; round < rounds; ++round)
    for (Engine& each : engines) each.nanoseconds.push_back(measure(each, steps, sink));
  const double naive = median(engines[0].nanoseconds);
  for (const Engine& each : engines)
    std::printf("{\"bench\":\"infer\",\"model\":\"%s\",\"hidden\":%d,\"inputs\":%d,\"phases\":%d,"
                "\"engine\":\"%s\",\"ns_per_step\":%.1f,\"of_naive\":%.3f}\n",
                label, size.hidden, fixed.window_size(), size.phases, each.name,
                median(each.nanoseconds), median(each.nanoseconds) / naive);
  if (sink == 0) std::puts("");
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 51;
  if (argc > 1) std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), rounds);
  if (rounds < 1) return EXIT_FAILURE;
  run("default", {6, 10, 3, 5}, rounds);
  run("48x168", {42, 48, 3, 5}, rounds);
  return EXIT_SUCCESS;
}
