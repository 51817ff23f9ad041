#include "model/crbm_fixed.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/crbm.h"
#include "model/scalar_math.h"
#include "model/scaler.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"

using namespace cgphase;

namespace {

struct Agreement {
  int windows = 0, agreed = 0, certified = 0, violations = 0, bound_broken = 0;
};

// Runs both engines on random windows of one model.
void compare(const Model& model, std::uint64_t seed, int windows, double deviation,
             Agreement& sum) {
  const CrbmFixed fixed(model.crbm, model.centroids);
  Random random(seed);
  for (int i = 0; i < windows; ++i) {
    const std::vector<double> window = random_window(random, model.crbm, deviation);
    const std::vector<double> past(window.begin(), window.end() - model.crbm.n_vis);
    const std::vector<double> present(window.end() - model.crbm.n_vis, window.end());
    const naive::Nearest expected =
        naive::nearest(model.centroids, naive::hidden(model.crbm, present, past));
    const std::vector<std::int16_t> integers = quantized(window);
    const CrbmFixed::Nearest found = fixed.nearest(integers);
    const double margin = std::ldexp(static_cast<double>(found.margin), -2 * kActivationShift);
    const double bound = fixed.error_bound(integers);
    const bool same = found.index == static_cast<int>(expected.index);
    const bool certified = margin > bound;
    ++sum.windows;
    sum.agreed += same;
    sum.certified += certified;
    sum.violations += certified && !same;
    sum.bound_broken += same && std::abs(margin - expected.margin) > bound;
  }
}

}  // namespace

TEST_CASE("the table sigmoid is within its error bound on a dense grid and beyond the table") {
  double worst = 0;
  for (std::int64_t z = -14 << 16; z <= 14 << 16; z += 7) {
    const double exact = portable_sigmoid(std::ldexp(static_cast<double>(z), -16));
    worst = std::max(worst, std::abs(std::ldexp(fixed_sigmoid(z), -15) - exact));
  }
  CHECK(worst <= kFixedSigmoidError);
  CHECK(worst > kFixedSigmoidError / 2);  // the bound is tight
  CHECK(fixed_sigmoid(std::int64_t{1} << 52) == 32767);
  CHECK(fixed_sigmoid(-(std::int64_t{1} << 52)) == fixed_sigmoid(-12 * 65536));
}

TEST_CASE("the table sigmoid is monotone") {
  std::int16_t previous = 0;
  bool rising = true;
  for (std::int64_t z = -12 << 16; z <= 12 << 16; z += 3) {
    rising = rising && fixed_sigmoid(z) >= previous;
    previous = fixed_sigmoid(z);
  }
  CHECK(rising);
}

TEST_CASE("if the margin exceeds the bound, the phase is that of the naive loop") {
  Agreement sum;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const ExampleSize size{2 + static_cast<int>(seed % 7), 1 + static_cast<int>(seed % 23),
                           static_cast<int>(seed % 5), 1 + static_cast<int>(seed % 8)};
    compare(random_model(seed, size, 0.05 * static_cast<double>(seed)), seed, 200, 1.5, sum);
  }
  CHECK(sum.violations == 0);
  CHECK(sum.bound_broken == 0);
  CHECK(sum.agreed >= sum.windows * 999 / 1000);
  CHECK(sum.certified >= sum.windows / 2);
}

TEST_CASE("extreme weights stay within their error bound") {
  Agreement sum;
  compare(random_model(5, {}, 1e-7), 1, 200, 8, sum);
  compare(random_model(6, {}, 1e4), 2, 200, 8, sum);
  CHECK(sum.violations == 0);
  CHECK(sum.bound_broken == 0);
}

TEST_CASE("a model on the grid has a tighter bound than the same model off it") {
  Model model = random_model(11);
  Random random(12);
  const std::vector<std::int16_t> window = quantized(random_window(random, model.crbm));
  const double before = CrbmFixed(model.crbm, model.centroids).error_bound(window);
  snap_to_grid(model.crbm);
  snap_to_grid(model.centroids);
  CHECK(CrbmFixed(model.crbm, model.centroids).error_bound(window) < before);
  Agreement sum;
  compare(model, 13, 2000, 1, sum);
  CHECK(sum.violations == 0);
  CHECK(sum.bound_broken == 0);
}

TEST_CASE("snapping to the grid twice equals snapping once, scales included") {
  Model once = random_model(21);
  snap_to_grid(once.crbm);
  CrbmParameters twice = once.crbm;
  snap_to_grid(twice);
  CHECK(twice.w == once.crbm.w);
  CHECK(twice.b == once.crbm.b);
  CHECK(weight_shifts(twice) == weight_shifts(once.crbm));
}

TEST_CASE("the largest model works with the largest weights and inputs") {
  const ExampleSize size{kMaxFeatures, kMaxHidden, kMaxHistory, kMaxPhases};
  Model model = random_model(31, size, 0.01);
  std::fill(model.crbm.w.begin(), model.crbm.w.end(), 1.0);
  std::fill(model.crbm.b.begin(), model.crbm.b.end(), 1.0);
  const CrbmFixed fixed(model.crbm, model.centroids);
  const std::vector<std::int16_t> high(static_cast<std::size_t>(fixed.window_size()), 32767);
  std::vector<std::int16_t> activation(kMaxHidden);
  fixed.hidden(high, activation.data());
  CHECK(activation.front() == 32767);
  CHECK(activation.back() == 32767);
}

TEST_CASE("an input beyond the bound is quantized to the bound") {
  CHECK(quantize_input(kStandardisedBound) == 32767);
  CHECK(quantize_input(9) == 32767);
  CHECK(quantize_input(-9) == -32767);
  CHECK(quantize_input(0) == 0);
}
