#include "model/train/merge.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/model/example_models.h"

using namespace cgphase;

namespace {

// Computed by the definition, in two passes.
PhaseSummary summary_of(const std::vector<double>& cpu, const std::vector<double>& memory,
                        double novelty) {
  PhaseSummary phase;
  phase.count = static_cast<double>(cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    phase.cpu_mean_ratio += cpu[i] / phase.count;
    phase.memory_mean_ratio += memory[i] / phase.count;
  }
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    const double cpu_away = cpu[i] - phase.cpu_mean_ratio;
    const double memory_away = memory[i] - phase.memory_mean_ratio;
    phase.cpu_m2 += cpu_away * cpu_away, phase.memory_m2 += memory_away * memory_away;
  }
  phase.novelty_distance = novelty;
  return phase;
}

void check_same(const PhaseSummary& a, const PhaseSummary& b) {
  CHECK(a.count == b.count);
  CHECK(a.cpu_mean_ratio == doctest::Approx(b.cpu_mean_ratio));
  CHECK(a.cpu_m2 == doctest::Approx(b.cpu_m2));
  CHECK(a.memory_mean_ratio == doctest::Approx(b.memory_mean_ratio));
  CHECK(a.memory_m2 == doctest::Approx(b.memory_m2));
  CHECK(a.novelty_distance == b.novelty_distance);
}

std::string why_other(const Model& model, const Model& other) {
  const Status status = check_same_phases(model, "a.json", other, "b.json");
  REQUIRE(!status);
  CHECK(status.error().kind == ErrorKind::invalid);
  return status.error().text;
}

}  // namespace

TEST_CASE("statistics of two hosts add up to those of all their samples, in either order") {
  const PhaseSummary a = summary_of({0.1, 0.3, 0.35}, {0.5, 0.5, 0.6}, 0.2);
  const PhaseSummary b = summary_of({0.9, 0.7}, {0.1, 0.05}, 0.3);
  const PhaseSummary all = summary_of({0.1, 0.3, 0.35, 0.9, 0.7}, {0.5, 0.5, 0.6, 0.1, 0.05}, 0.3);
  check_same(add_up(a, b), all);
  check_same(add_up(b, a), all);
}

TEST_CASE("a host without samples of a phase does not change it") {
  const PhaseSummary seen = summary_of({0.1, 0.3}, {0.5, 0.4}, 0.2);
  check_same(add_up(seen, {}), seen);
  check_same(add_up({}, seen), seen);
  check_same(add_up({}, {}), {});
}

TEST_CASE("the novelty distance is unknown if one side does not know its own") {
  const PhaseSummary known = summary_of({0.1, 0.3}, {0.5, 0.4}, 0.2);
  const PhaseSummary unknown = summary_of({0.2}, {0.4}, 0);
  CHECK(add_up(known, unknown).novelty_distance == 0);
  CHECK(add_up(unknown, known).novelty_distance == 0);
}

TEST_CASE("novelty distances are merged even if ratios were never counted") {
  PhaseSummary far, near;
  far.novelty_distance = 0.5, near.novelty_distance = 0.1;
  check_same(add_up(near, far), far);
}

TEST_CASE("models with other phases are refused with the key that differs") {
  const Model model = random_model(1);
  CHECK(check_same_phases(model, "a.json", model, "b.json"));
  Model other = model;
  other.crbm.w[3] += 0.5;
  CHECK(why_other(model, other).starts_with("b.json: crbm: differs from a.json: "));
  other = model;
  other.step_seconds += 1;
  CHECK(why_other(model, other).starts_with("b.json: step_seconds: "));
  other = model;
  other.scaler.mean[0] += 1;
  CHECK(why_other(model, other).starts_with("b.json: scaler: "));
  other = model;
  other.centroids.values[3] /= 2;
  CHECK(why_other(model, other).starts_with("b.json: centroids: "));
  other = model;
  other.switch_cost += 0.25;
  CHECK(why_other(model, other).starts_with("b.json: switch_cost: "));
  other = model;
  other.schema.entries.pop_back();
  CHECK(why_other(model, other).starts_with("b.json: features: "));
  // Statistics and provenance may differ, because they are added up.
  other = model;
  other.phases[0].count += 7;
  other.provenance["program"] = "another";
  CHECK(check_same_phases(model, "a.json", other, "b.json"));
}
