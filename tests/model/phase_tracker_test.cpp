#include "model/phase_tracker.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "model/feature_schema.h"
#include "tests/model/example_models.h"
#include "tests/model/naive_crbm.h"

using namespace cgphase;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

std::shared_ptr<const PhaseEngine> engine_of(const Model& model) {
  auto engine = PhaseEngine::create(model);
  REQUIRE(engine);
  return *engine;
}

// One feature, one hidden unit with sigmoid(x): phase 0 at 0.25, phase 1 at 0.75, no history.
Model tiny_model(int history = 0) {
  Model model = random_model(1, {1, 1, history, 2});
  model.scaler = {{0}, {1}};
  model.crbm.w = {1};
  model.crbm.b.assign(static_cast<std::size_t>(history), 0);
  model.crbm.hidden_bias = {0};
  model.centroids.values = {0.25, 0.75};
  for (PhaseSummary& phase : model.phases) phase.novelty_distance = 0.0025;
  return model;
}

double logit(double p) { return std::log(p / (1 - p)); }

}  // namespace

TEST_CASE("the phase of a step includes that step") {
  PhaseTracker tracker(engine_of(tiny_model()));
  Phase phase = tracker.step({{logit(0.25)}});
  CHECK(phase.state == PhaseState::known);
  CHECK(phase.index == 0);
  CHECK(phase.distance < 1e-7);
  CHECK(phase.margin == doctest::Approx(0.25).epsilon(1e-3));
  phase = tracker.step({{logit(0.75)}});
  CHECK(phase.index == 1);
}

TEST_CASE("until the history is full the state is not_enough_history") {
  PhaseTracker tracker(engine_of(tiny_model(3)));
  for (int i = 0; i < 3; ++i) {
    const Phase phase = tracker.step({{logit(0.25)}});
    CHECK(phase.state == PhaseState::not_enough_history);
    CHECK(phase.index == -1);
  }
  CHECK(tracker.step({{logit(0.25)}}).known());
}

TEST_CASE("a gap resets the history") {
  PhaseTracker tracker(engine_of(tiny_model(3)));
  for (int i = 0; i < 4; ++i) tracker.step({{logit(0.25)}});
  tracker.reset();
  for (int i = 0; i < 3; ++i)
    CHECK(tracker.step({{logit(0.25)}}).state == PhaseState::not_enough_history);
  CHECK(tracker.step({{logit(0.25)}}).known());
}

TEST_CASE("a step beyond the novelty bound is unknown and has the index of the nearest phase") {
  PhaseTracker tracker(engine_of(tiny_model()));
  // Novelty bound: twice 0.05 away from 0.75, which is a distance of 0.1.
  CHECK(tracker.step({{logit(0.84)}}).known());
  const Phase phase = tracker.step({{logit(0.86)}});
  CHECK(phase.state == PhaseState::unknown);
  CHECK(phase.index == 1);
}

TEST_CASE("a model without novelty distances has no novelty bound") {
  Model model = tiny_model();
  for (PhaseSummary& phase : model.phases) phase.novelty_distance = 0;
  PhaseTracker tracker(engine_of(model));
  CHECK(tracker.step({{logit(0.99)}}).known());
}

TEST_CASE("a step between two centroids is unknown") {
  Model model = tiny_model();
  for (PhaseSummary& phase : model.phases) phase.novelty_distance = 0;
  PhaseTracker tracker(engine_of(model));
  CHECK(tracker.step({{0.0}}).state == PhaseState::unknown);
  CHECK(tracker.step({{0.00005}}).state == PhaseState::unknown);
  CHECK(tracker.step({{0.01}}).known());
}

TEST_CASE("with a single centroid every step near it is known") {
  Model model = tiny_model();
  model.centroids = {1, 1, {0.25}};
  model.phases.resize(1);
  PhaseTracker tracker(engine_of(model));
  CHECK(tracker.step({{logit(0.25)}}).known());
  CHECK(tracker.step({{logit(0.75)}}).state == PhaseState::unknown);
}

TEST_CASE("absent and nan features are imputed and counted") {
  const Model model = random_model(4);
  PhaseTracker tracker(engine_of(model));
  for (int i = 0; i < 20; ++i) {
    const Phase phase = tracker.step({{1.0, std::nullopt, kNan, 2.0, 1e300, -1e300}});
    CHECK(std::isfinite(phase.distance));
    CHECK(std::isfinite(phase.margin));
    CHECK(phase.margin >= 0);
  }
  CHECK(tracker.imputed_count() == 40);
}

TEST_CASE("a step that measured nothing ends the history") {
  PhaseTracker tracker(engine_of(tiny_model(1)));
  tracker.step({{logit(0.25)}});
  CHECK(tracker.step({{logit(0.25)}}).known());
  CHECK(tracker.step({{std::nullopt}}).state == PhaseState::not_enough_history);
  CHECK(tracker.step({{logit(0.25)}}).state == PhaseState::not_enough_history);
  CHECK(tracker.step({{logit(0.25)}}).known());
}

TEST_CASE("a step that lacks an optional input ends the history, one that lacks another does not") {
  Model model = random_model(5);
  model.schema = log_schema();
  model.schema.entries[5] = {Feature::gpu_utilisation_ratio, "gpu_utilisation_ratio"};
  for (PhaseSummary& phase : model.phases) phase.novelty_distance = 0;
  PhaseTracker tracker(engine_of(model));
  FeatureVector vector{std::vector<std::optional<double>>(6, 0.5)};
  Phase phase;
  const auto step = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) phase = tracker.step(vector);
    return phase.state != PhaseState::not_enough_history;
  };
  const auto history = static_cast<std::size_t>(model.crbm.n_his);
  CHECK(step(history + 1));
  vector.values[3].reset();
  CHECK(step(1));
  vector.values[5].reset();
  CHECK_FALSE(step(1));
  CHECK_FALSE(step(3 * history));
  vector.values[5] = 0.5;
  CHECK_FALSE(step(history));
  CHECK(step(1));
}

TEST_CASE("a known phase is that of the naive loop over the whole history") {
  Model model = random_model(9);
  for (PhaseSummary& phase : model.phases) phase.novelty_distance = 0;
  PhaseTracker tracker(engine_of(model));
  Random random(10);
  std::vector<double> seen;
  int known = 0;
  for (int i = 0; i < 500; ++i) {
    FeatureVector vector;
    for (std::size_t f = 0; f < 6; ++f) {
      const double standard = random.normal();
      seen.push_back(standard);
      vector.values.push_back(model.scaler.mean[f] + model.scaler.scale[f] * standard);
    }
    const Phase phase = tracker.step(vector);
    if (!phase.known()) continue;
    ++known;
    const std::vector<double> present(seen.end() - 6, seen.end());
    const std::vector<double> past(seen.end() - 24, seen.end() - 6);
    const naive::Nearest expected =
        naive::nearest(model.centroids, naive::hidden(model.crbm, present, past));
    CHECK(phase.index == static_cast<int>(expected.index));
    CHECK(std::abs(phase.distance - expected.distance) < 0.01);
  }
  CHECK(known > 400);
}

TEST_CASE("with a switch cost one step beyond the middle keeps the phase, several change it") {
  Model model = tiny_model();
  for (PhaseSummary& phase : model.phases) phase.novelty_distance = 0;
  model.switch_cost = 0.25;
  PhaseTracker tracker(engine_of(model));
  CHECK(tracker.step({{logit(0.25)}}).index == 0);
  CHECK(tracker.step({{logit(0.25)}}).index == 0);
  // At 0.7 the squared distances are 0.2025 and 0.0025: 0.2 of the cost 0.25 is reached.
  Phase phase = tracker.step({{logit(0.7)}});
  CHECK(phase.known());
  CHECK(phase.index == 0);
  CHECK(phase.distance == doctest::Approx(0.2025).epsilon(1e-3));
  CHECK(phase.margin == doctest::Approx(-0.2).epsilon(1e-3));
  phase = tracker.step({{logit(0.7)}});
  CHECK(phase.index == 1);
  CHECK(phase.known());
  CHECK(phase.margin == doctest::Approx(0.2).epsilon(1e-3));
}

TEST_CASE("a gap, and a step that measured nothing, clear the path") {
  Model model = tiny_model();
  for (PhaseSummary& phase : model.phases) phase.novelty_distance = 0;
  model.switch_cost = 0.25;
  PhaseTracker tracker(engine_of(model));
  for (int i = 0; i < 3; ++i) tracker.step({{logit(0.25)}});
  CHECK(tracker.step({{logit(0.7)}}).index == 0);
  tracker.reset();
  CHECK(tracker.step({{logit(0.7)}}).index == 1);
  for (int i = 0; i < 3; ++i) tracker.step({{logit(0.25)}});
  tracker.step({{std::nullopt}});
  CHECK(tracker.step({{logit(0.7)}}).index == 1);
}

TEST_CASE("a path between two phases is unknown, and novelty is that of the current phase") {
  Model model = tiny_model();
  model.switch_cost = 0.2;
  model.phases[0].novelty_distance = 0.01;  // unknown beyond 0.04: at 0.45
  PhaseTracker tracker(engine_of(model));
  CHECK(tracker.step({{0.0}}).state == PhaseState::unknown);
  tracker.reset();
  for (int i = 0; i < 3; ++i) CHECK(tracker.step({{logit(0.25)}}).known());
  CHECK(tracker.step({{logit(0.44)}}).known());
  const Phase phase = tracker.step({{logit(0.55)}});
  CHECK(phase.index == 0);
  CHECK(phase.state == PhaseState::unknown);
}

TEST_CASE("no engine is built from a model that does not pass check_model") {
  Model model = tiny_model();
  model.crbm.w.clear();
  const auto engine = PhaseEngine::create(model);
  REQUIRE(!engine);
  CHECK(engine.error().text == "model: crbm.W: has 0 numbers, not 1");
}

TEST_CASE("trackers of one engine keep their own history") {
  const auto engine = engine_of(tiny_model(1));
  PhaseTracker first(engine), second(engine);
  first.step({{logit(0.25)}});
  CHECK(first.step({{logit(0.25)}}).known());
  CHECK(second.step({{logit(0.25)}}).state == PhaseState::not_enough_history);
}
