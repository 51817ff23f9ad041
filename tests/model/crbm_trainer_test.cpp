#include "model/train/crbm_trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"
#include "tests/model/test_data.h"

using namespace cgphase;
using nlohmann::json;

namespace {

std::vector<double> flat(const json& matrix) {
  if (!matrix.is_array()) return {matrix.get<double>()};
  std::vector<double> values;
  for (const json& row : matrix)
    for (const double value : flat(row)) values.push_back(value);
  return values;
}

CrbmParameters parameters_of(const json& object) {
  CrbmParameters p;
  p.n_vis = 8, p.n_hid = 10, p.n_his = 3;
  p.w = flat(object["W"]), p.a = flat(object["A"]), p.b = flat(object["B"]);
  p.visible_bias = flat(object["v_bias"]), p.hidden_bias = flat(object["h_bias"]);
  return p;
}

double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

double worst_difference(const CrbmParameters& a, const CrbmParameters& b) {
  return std::max({worst_difference(a.w, b.w), worst_difference(a.a, b.a),
                   worst_difference(a.b, b.b), worst_difference(a.visible_bias, b.visible_bias),
                   worst_difference(a.hidden_bias, b.hidden_bias)});
}

// One plain step along the gradient of one window.
double descend(Crbm& crbm, const double* window, double rate) {
  CrbmGradient gradient(crbm);
  double error = 0;
  ContrastiveDivergence().add(crbm, std::span(&window, 1), gradient, error);
  crbm.hidden_weights += rate * gradient.hidden_weights;
  crbm.history_weights += rate * gradient.history_weights;
  crbm.visible_bias += rate * gradient.visible_bias;
  crbm.hidden_bias += rate * gradient.hidden_bias;
  return error;
}

// The rows of AI4DL's sample trace, scaled with its own scaler, as windows within executions.
std::vector<std::vector<double>> public_windows(const json& scaler) {
  TraceOptions options;
  options.columns = {"cpu.usage",   "cpu.usage.cores", "cpu.usage.pct",
                     "cpu.usage.pct.container.requested", "mem.current", "mem.limit",
                     "mem.usage.pct", "mem.working.set"};
  const Result<Trace> trace = read_trace(test_data("ai4dl/sample.csv"), options);
  REQUIRE(trace);
  std::vector<std::vector<double>> windows;
  for (const Execution& execution : trace->executions) {
    std::vector<double> rows;
    for (std::size_t i = 0; i < execution.rows.size(); ++i) {
      for (std::size_t f = 0; f < 8; ++f)
        rows.push_back((*execution.rows[i].columns[f] - scaler["mean"][f].get<double>()) /
                       scaler["scale"][f].get<double>());
      if (i >= 3) windows.emplace_back(rows.end() - 32, rows.end());
    }
  }
  return windows;
}

}  // namespace

TEST_CASE("the CD-1 gradient equals that of the naive loops") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Model model = random_model(seed, {4, 7, 2, 2});
    Random random(seed);
    const std::vector<double> window = random_window(random, model.crbm);
    const std::vector<double> c(window.begin(), window.begin() + 8),
        v(window.begin() + 8, window.end());
    const std::vector<double> h0 = naive::hidden(model.crbm, v, c);
    const std::vector<double> v1 = naive::reconstruct(model.crbm, h0, c);
    const std::vector<double> h1 = naive::hidden(model.crbm, v1, c);

    const Crbm crbm(model.crbm);
    CrbmGradient gradient(crbm);
    double error = 0;
    const double* one = window.data();
    ContrastiveDivergence().add(crbm, std::span(&one, 1), gradient, error);
    double square = 0, worst = 0;
    const auto compare = [&](double value, double expected) {
      worst = std::max(worst, std::abs(value - expected));
    };
    const auto at = [](std::size_t i) { return static_cast<Eigen::Index>(i); };
    for (std::size_t i = 0; i < 4; ++i) {
      square += (v[i] - v1[i]) * (v[i] - v1[i]);
      compare(gradient.visible_bias[at(i)], v[i] - v1[i]);
      for (std::size_t j = 0; j < 8; ++j)
        compare(gradient.history_weights(at(i), at(j)), (v[i] - v1[i]) * c[j]);
    }
    for (std::size_t k = 0; k < 7; ++k) {
      compare(gradient.hidden_bias[at(k)], h0[k] - h1[k]);
      for (std::size_t j = 0; j < 8; ++j)
        compare(gradient.hidden_weights(at(k), at(j)), (h0[k] - h1[k]) * c[j]);
      for (std::size_t i = 0; i < 4; ++i)
        compare(gradient.hidden_weights(at(k), at(8 + i)), h0[k] * v[i] - h1[k] * v1[i]);
    }
    CHECK(worst < 1e-13);
    CHECK(error == doctest::Approx(std::sqrt(square)).epsilon(1e-13));
  }
}

TEST_CASE("several windows at once give the same gradient and errors as one by one, bit by bit") {
  for (const ExampleSize size : {ExampleSize{4, 7, 2, 3}, ExampleSize{8, 10, 3, 5}}) {
    const Model model = random_model(5, size);
    const Crbm crbm(model.crbm);
    Random random(6);
    std::vector<std::vector<double>> windows;
    std::vector<const double*> all;
    for (int i = 0; i < 21; ++i) windows.push_back(random_window(random, model.crbm));
    for (const std::vector<double>& window : windows) all.push_back(window.data());
    CrbmGradient at_once(crbm), in_turn(crbm);
    double error_at_once = 0, error_in_turn = 0, error_alone = 0;
    ContrastiveDivergence divergence;
    divergence.add(crbm, all, at_once, error_at_once);
    for (const double*& window : all)
      divergence.add(crbm, std::span(&window, 1), in_turn, error_in_turn);
    divergence.add_errors(crbm, all, error_alone);
    CHECK(at_once.hidden_weights == in_turn.hidden_weights);
    CHECK(at_once.history_weights == in_turn.history_weights);
    CHECK(at_once.hidden_bias == in_turn.hidden_bias);
    CHECK(at_once.visible_bias == in_turn.visible_bias);
    CHECK(error_at_once == error_in_turn);
    CHECK(error_alone == error_in_turn);
  }
}

TEST_CASE("plain steps along the gradient reproduce AI4DL's training on its public trace") {
  const std::string path = test_data("ai4dl/train_vector.json");
  if (path.empty()) return;
  const Result<std::string> text = read_file(path, 1U << 20);
  REQUIRE(text);
  const json vector = json::parse(*text);
  const std::vector<std::vector<double>> windows = public_windows(vector["scaler"]);
  REQUIRE(windows.size() == vector["n_slices"].get<std::size_t>());
  Crbm crbm(parameters_of(vector["init"]));
  for (std::size_t step = 0; step < 1920; ++step) {
    const double error = descend(crbm, windows[step % windows.size()].data(), 0.001);
    CHECK(std::isfinite(error));
    // The released weights are float32, and their rounding accumulates over the epochs.
    if (step + 1 == 1)
      CHECK(worst_difference(crbm.parameters(), parameters_of(vector["after"]["1"])) < 1e-8);
    if (step + 1 == 10)
      CHECK(worst_difference(crbm.parameters(), parameters_of(vector["after"]["10"])) < 1e-7);
    if (step + 1 == 192)
      CHECK(worst_difference(crbm.parameters(), parameters_of(vector["after"]["192"])) < 1e-6);
    if (step + 1 == 1920)
      CHECK(worst_difference(crbm.parameters(), parameters_of(vector["after"]["1920"])) < 1e-6);
  }
}
