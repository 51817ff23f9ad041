#include "model/phase_path.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/centroids.h"
#include "model/crbm_fixed.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"

using namespace cgphase;

namespace {

using Distances = std::vector<std::int64_t>;

// Only the number of centroids and their parents matter here.
Centroids phases(int count, std::vector<int> parents = {}) {
  return {count, 1, std::vector<double>(static_cast<std::size_t>(count), 0.5), std::move(parents)};
}

double units(std::int64_t count) { return std::ldexp(static_cast<double>(count), -30); }

std::vector<int> decode(PhasePath path, const std::vector<Distances>& steps) {
  std::vector<int> found;
  for (const Distances& distances : steps) found.push_back(path.step(distances, 0).index);
  return found;
}

std::vector<Distances> random_steps(Random& random, std::size_t count, std::size_t phase_count,
                                    std::size_t largest) {
  std::vector<Distances> steps(count);
  for (Distances& distances : steps)
    for (std::size_t i = 0; i < phase_count; ++i)
      distances.push_back(static_cast<std::int64_t>(random.below(largest)));
  return steps;
}

// The smallest cost over all sequences of phases that end in `last`, tried one by one.
std::int64_t cheapest(const std::vector<Distances>& steps, std::size_t count, int last,
                      std::int64_t switch_cost) {
  const auto phase_count = static_cast<int>(steps[0].size());
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  int sequences = 1;
  for (std::size_t t = 1; t < count; ++t) sequences *= phase_count;
  for (int sequence = 0; sequence < sequences; ++sequence) {
    std::int64_t cost = 0;
    int phase = last, rest = sequence;
    for (std::size_t t = count; t-- > 0;) {
      cost += steps[t][static_cast<std::size_t>(phase)];
      if (t == 0) break;
      const int before = rest % phase_count;
      rest /= phase_count;
      if (before != phase) cost += switch_cost;
      phase = before;
    }
    least = std::min(least, cost);
  }
  return least;
}

// The path as the docstring of PhasePath defines it, in double and over the whole history.
class ExactPath {
 public:
  explicit ExactPath(double switch_cost) : switch_cost_(switch_cost) {}
  int step(const std::vector<double>& distances) {
    if (costs_.empty()) costs_.assign(distances.size(), 0);
    const double least = *std::ranges::min_element(costs_);
    for (std::size_t i = 0; i < costs_.size(); ++i)
      costs_[i] = std::min(costs_[i], least + switch_cost_) - least + distances[i];
    return static_cast<int>(std::ranges::min_element(costs_) - costs_.begin());
  }

 private:
  double switch_cost_;
  std::vector<double> costs_;
};

}  // namespace

TEST_CASE("path: a phase is kept until leaving it is cheaper than the switch cost") {
  PhasePath path(phases(2), units(10));
  // Costs of phases 0 and 1 by hand, relative to the smallest: (0,9) (0,8) (0,4) (0,0) (4,0).
  const std::vector<Distances> steps{{0, 9}, {2, 1}, {4, 0}, {4, 0}, {4, 0}};
  std::vector<std::int64_t> margins;
  for (const Distances& distances : steps) margins.push_back(path.step(distances, 0).margin);
  CHECK(margins == std::vector<std::int64_t>{9, -1, -4, -4, 4});
  CHECK(decode(PhasePath(phases(2), units(10)), steps) == std::vector<int>{0, 0, 0, 0, 1});
}

TEST_CASE("path: a single step near another phase does not change the phase") {
  const std::vector<Distances> steps{{0, 8}, {0, 8}, {8, 0}, {0, 8}, {0, 8}};
  CHECK(decode(PhasePath(phases(2), units(10)), steps) == std::vector<int>{0, 0, 0, 0, 0});
  CHECK(decode(PhasePath(phases(2), units(5)), steps) == std::vector<int>{0, 0, 1, 0, 0});
}

TEST_CASE("path: the cost equals the minimum over all sequences") {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const std::size_t phase_count = 1 + random.below(4);
    const auto switch_cost = static_cast<std::int64_t>(random.below(30));
    const std::vector<Distances> steps = random_steps(random, 6, phase_count, 20);
    PhasePath path(phases(static_cast<int>(phase_count)), units(switch_cost));
    for (std::size_t t = 0; t < steps.size(); ++t) {
      std::vector<std::int64_t> costs;
      for (std::size_t i = 0; i < phase_count; ++i)
        costs.push_back(cheapest(steps, t + 1, static_cast<int>(i), switch_cost));
      const auto best = std::ranges::min_element(costs) - costs.begin();
      CHECK(path.step(steps[t], 0).index == best);
    }
  }
}

TEST_CASE("path: without a switch cost it is the nearest phase, with its margin") {
  Random random(6);
  for (const std::vector<int>& parents : {std::vector<int>{}, std::vector<int>{-1, -1, -1, 1, 1}}) {
    PhasePath path(phases(5, parents), 0);
    CHECK_FALSE(path.sticky());
    for (const Distances& distances : random_steps(random, 300, 5, 50)) {
      const auto expected =
          choose_centroid(std::span<const std::int64_t>(distances), std::span<const int>(parents));
      const PhasePath::Step step = path.step(distances, 0);
      CHECK(step.index == expected.index);
      CHECK(step.distance == expected.distance);
      CHECK(step.margin == expected.margin);
      CHECK(step.certain == (expected.margin > 0));
    }
  }
}

TEST_CASE("path: it runs over phases that are not parts, and ends in the nearest part") {
  // Phase 1 was split into 2 and 3, and 3 into 4 and 5.
  PhasePath path(phases(6, {-1, -1, 1, 1, 3, 3}), units(10));
  CHECK(path.step({{9, 0, 1, 2, 0, 0}}, 0).index == 2);
  // Part 2 is no longer the nearest. A change of part costs nothing.
  PhasePath::Step step = path.step({{9, 0, 7, 2, 5, 3}}, 0);
  CHECK(step.index == 5);
  CHECK(step.distance == 3);
  CHECK(step.margin == 2);
  // Phase 0 is nearer, but not by enough yet. A very near part of phase 1 does not matter.
  step = path.step({{0, 6, 0, 1, 0, 2}}, 0);
  CHECK(step.index == 2);
  CHECK(step.margin == -6);
  CHECK(path.step({{0, 6, 0, 1, 0, 2}}, 0).index == 0);
}

TEST_CASE("path: a reset forgets the phase") {
  PhasePath path(phases(2), units(10));
  path.step({{0, 9}}, 0);
  CHECK(path.step({{1, 0}}, 0).index == 0);
  path.reset();
  CHECK(path.step({{1, 0}}, 0).index == 1);
}

TEST_CASE("path: a phase is certain if its margin exceeds all accumulated errors") {
  PhasePath path(phases(2), units(100));
  // Margins 3, 6, 9 against accumulated bounds of 2, 4, 6: the error accumulates.
  CHECK(path.step({{0, 3}}, units(2)).certain);
  CHECK(path.step({{0, 1}}, units(2)).certain == false);  // 4 is not more than 4
  CHECK(path.step({{0, 3}}, units(2)).certain);           // 7 > 6
  CHECK(path.step({{0, 0}}, units(2)).certain == false);  // 7 < 8
  // 110 exceeds 100 + 10, so that the next step begins with 0 and 100 for any error.
  CHECK(path.step({{0, 103}}, units(2)).certain);
  CHECK(path.step({{98, 0}}, units(1)).certain);          // 2 > 1
  CHECK(path.step({{1, 0}}, units(1)).certain == false);  // 1 < 2
}

TEST_CASE("path: a remaining error is at most two switch costs") {
  PhasePath path(phases(2), units(10));
  for (int i = 0; i < 1000; ++i) path.step({{0, 0}}, units(3));
  CHECK(path.step({{0, 23}}, units(3)).certain == false);
  path.reset();
  for (int i = 0; i < 1000; ++i) path.step({{0, 0}}, units(3));
  CHECK(path.step({{0, 24}}, units(3)).certain);
}

TEST_CASE("path: a reset ends the accumulated error") {
  PhasePath path(phases(2), units(100));
  for (int i = 0; i < 10; ++i) path.step({{0, 0}}, units(3));
  CHECK_FALSE(path.step({{0, 4}}, units(3)).certain);
  path.reset();
  CHECK(path.step({{0, 4}}, units(3)).certain);
}

TEST_CASE("path: a part is certain only by its own margin") {
  const std::vector<int> parents{-1, -1, 1, 1};
  CHECK(PhasePath(phases(4, parents), units(10)).step({{50, 0, 1, 5}}, units(3)).certain);
  CHECK_FALSE(PhasePath(phases(4, parents), units(10)).step({{50, 0, 1, 4}}, units(3)).certain);
  CHECK_FALSE(PhasePath(phases(4, parents), units(10)).step({{3, 0, 1, 5}}, units(3)).certain);
}

TEST_CASE("path: a single phase is always certain") {
  PhasePath path(phases(1), units(10));
  const PhasePath::Step step = path.step({{7}}, units(1000));
  CHECK(step.certain);
  CHECK(step.margin == 0);
  CHECK(step.distance == 7);
}

TEST_CASE("path: the largest distances, switch cost and error bound do not overflow") {
  const std::int64_t most = std::int64_t{kMaxHidden} << 30;
  PhasePath path(phases(2), kMaxSwitchCost);
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(path.step({{0, most}}, 1e300).certain);
    CHECK_FALSE(path.step({{most, 0}}, 1e300).certain);
  }
  path.reset();
  CHECK(path.step({{0, most}}, 0).certain);
  // The switch costs exactly as much as it gains; of equal costs the first wins.
  CHECK(path.step({{most, 0}}, 0).index == 0);
  CHECK(path.step({{1, 0}}, 0).index == 1);
}

TEST_CASE("path: a certain phase is the one that double arithmetic finds over all of history") {
  int certain = 0, agreeing = 0, kept = 0;
  constexpr int kSteps = 400;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Model model = random_model(seed, {6, 10, 1, 5}, 0.3);
    const CrbmFixed fixed(model.crbm, model.centroids);
    const double switch_cost = units(std::llround(std::ldexp(0.4, 30)));
    PhasePath path(model.centroids, switch_cost);
    ExactPath exact(switch_cost);
    Random random(seed);
    for (int i = 0; i < kSteps; ++i) {
      const std::vector<double> window = random_window(random, model.crbm);
      const std::vector<double> activation = naive::hidden(
          model.crbm, {window.end() - 6, window.end()}, {window.begin(), window.end() - 6});
      std::vector<double> distances;
      for (std::size_t k = 0; k < 5; ++k)
        distances.push_back(squared_distance(
            activation, std::span(&model.centroids.values[k * 10], 10)));
      std::int64_t squared[5];
      fixed.distances(quantized(window), squared);
      const PhasePath::Step step = path.step(squared, fixed.error_bound(quantized(window)));
      const int expected = exact.step(distances);
      certain += step.certain;
      agreeing += step.index == expected;
      kept += step.margin < 0;
      if (step.certain) CHECK(step.index == expected);
    }
  }
  CHECK(agreeing * 100 > 5 * kSteps * 99);
  CHECK(certain * 10 > 5 * kSteps * 9);
  CHECK(kept * 10 > 5 * kSteps);  // the path differs from the nearest phase
}
