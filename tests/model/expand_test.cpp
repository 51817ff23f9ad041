#include "model/train/expand.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/centroids.h"
#include "model/crbm_fixed.h"
#include "model/feature_schema.h"
#include "model/phase_tracker.h"
#include "model/train/fixed_proof.h"
#include "model/train/train.h"
#include "tests/model/synthetic_trace.h"

using namespace cgphase;

namespace {

// Two phases for three behaviours: one phase contains two of them.
struct Coarse {
  double stickiness = 0;
  std::vector<Trace> traces{synthetic_trace(1), synthetic_trace(2)};
  Model model = trained();
  Dataset data = make_dataset(traces, model);
  PhaseSamples samples = assign_phases(model, data);
  NoveltyReport report = report_novelty(model, samples, 1);

  Model trained() const {
    TrainOptions options;
    options.schema = plain_schema();
    options.step_seconds = 1;
    options.history = 3;
    options.hidden = 10;
    options.clusters = 2;
    options.epochs = 60;
    options.stickiness = stickiness;
    const Result<Model> result = train(options, traces);
    REQUIRE(result);
    return *result;
  }
  Result<Model> split(int phase, int clusters) const {
    return split_phase(model, data, samples, {.phase = phase, .clusters = clusters});
  }
};

}  // namespace

TEST_CASE("choose_centroid descends only to the parts of the nearest phase") {
  const std::vector<int> parents{-1, -1, 1, 1};
  const auto choose = [&](std::vector<double> distances) {
    return choose_centroid(std::span<const double>(distances), parents);
  };
  // Part 2 is nearer than phase 0, but phase 0 is nearer than phase 1.
  CHECK(choose({3, 4, 1, 2}).index == 0);
  CHECK(choose({3, 4, 1, 2}).margin == 1);
  CHECK(choose({5, 4, 9, 7}).index == 3);
  CHECK(choose({5, 4, 9, 7}).distance == 7);
  CHECK(choose({5, 4, 9, 7}).margin == 1);   // of the first level
  CHECK(choose({9, 4, 7.5, 7}).margin == 0.5);  // of the second level
}

TEST_CASE("the report counts every sample once, and training data are 1 % novel") {
  const Coarse coarse;
  std::size_t samples = 0, novel = 0;
  for (const PhaseFit& fit : coarse.report.phases) samples += fit.samples, novel += fit.novel;
  CHECK(samples == coarse.data.size());
  CHECK(novel == coarse.report.novel);
  CHECK(coarse.report.bounds_known);
  CHECK(coarse.report.novel * 100 <= coarse.report.samples);
}

TEST_CASE("behaviour that is not in the training data is novel") {
  const Coarse coarse;
  Trace strange = synthetic_trace(3);
  for (TraceRow& row : strange.executions[0].rows) {
    row.sample.memory.anon_bytes = 3 * kGiB;
    row.sample.cpu.usage_usec = *row.sample.cpu.usage_usec * 5;
  }
  const Dataset data = make_dataset(std::vector{strange}, coarse.model);
  const NoveltyReport report = report_novelty(coarse.model, assign_phases(coarse.model, data), 1);
  CHECK(report.novel * 2 > report.samples);
}

TEST_CASE("the phase to split contains two behaviours, and its parts separate them") {
  const Coarse coarse;
  const int phase = coarse.report.to_split;
  REQUIRE(phase >= 0);
  const Result<Model> split = coarse.split(phase, 2);
  REQUIRE(split);
  const PhaseSamples after = assign_phases(*split, coarse.data);
  std::size_t first = 0, second = 0;
  for (std::size_t i = 0; i < after.phases.size(); ++i) {
    if (coarse.samples.phases[i] != phase) {
      CHECK(after.phases[i] == coarse.samples.phases[i]);
      continue;
    }
    first += after.phases[i] == 2;
    second += after.phases[i] == 3;
  }
  CHECK(first > kFewestToSplit);
  CHECK(second > kFewestToSplit);
  const auto of_phase = std::ranges::count(coarse.samples.phases, phase);
  CHECK(first + second == static_cast<std::size_t>(of_phase));
  CHECK(split->phases[2].count + split->phases[3].count == static_cast<double>(of_phase));
}

TEST_CASE("the parts of a phase of a model with a switch cost share the samples of its path") {
  const Coarse coarse{.stickiness = 5};
  REQUIRE(coarse.model.switch_cost > 0);
  const int phase = coarse.report.to_split;
  const Result<Model> split = coarse.split(phase, 2);
  REQUIRE(split);
  CHECK(split->switch_cost == coarse.model.switch_cost);
  const auto of_phase = static_cast<double>(std::ranges::count(coarse.samples.phases, phase));
  CHECK(split->phases[2].count + split->phases[3].count == of_phase);
  const PhaseSamples after = assign_phases(*split, coarse.data);
  for (std::size_t i = 0; i < after.phases.size(); ++i)
    CHECK((after.phases[i] >= 2) == (coarse.samples.phases[i] == phase));
}

TEST_CASE("a split model is saved and loaded, and its integers find the same parts") {
  const Coarse coarse;
  const Result<Model> split = coarse.split(coarse.report.to_split, 3);
  REQUIRE(split);
  const Result<Model> again = parse_model(serialize_model(*split), "again");
  REQUIRE(again);
  CHECK(serialize_model(*again) == serialize_model(*split));
  CHECK(again->centroids.parents == split->centroids.parents);
  const FixedProof proof = prove_fixed(*again, coarse.data);
  CHECK(proof.violations == 0);
  CHECK(proof.agreeing * 1000 >= proof.windows * 999);
}

TEST_CASE("a part can be split again, a split phase cannot") {
  const Coarse coarse;
  const int phase = coarse.report.to_split;
  const Result<Model> once = coarse.split(phase, 2);
  REQUIRE(once);
  const PhaseSamples samples = assign_phases(*once, coarse.data);
  const auto again = [&](int which) {
    return split_phase(*once, coarse.data, samples, {.phase = which, .clusters = 2});
  };
  CHECK(again(phase).error().text.find("was already split") != std::string::npos);
  const Result<Model> twice = again(2);
  REQUIRE(twice);
  CHECK(twice->centroids.count == 6);
  CHECK(std::ranges::count(assign_phases(*twice, coarse.data).phases, 2) == 0);
}

TEST_CASE("impossible splits are refused") {
  const Coarse coarse;
  for (const auto& [phase, clusters] :
       {std::pair{-1, 2}, std::pair{2, 2}, std::pair{0, 1}, std::pair{0, kMaxPhases - 1}}) {
    const Result<Model> split = coarse.split(phase, clusters);
    REQUIRE_FALSE(split);
    CHECK(split.error().kind == ErrorKind::invalid);
  }
  const Trace little = synthetic_trace(1, 22);
  const Dataset data = make_dataset(std::vector{little}, coarse.model);
  const Result<Model> few = split_phase(coarse.model, data, assign_phases(coarse.model, data),
                                        {.phase = 0, .clusters = 2});
  CHECK(few.error().text.find("at least 20") != std::string::npos);
}

TEST_CASE("parents that point forward, or are not one per centroid, are refused") {
  Model model = Coarse().model;
  for (const std::vector<int>& parents :
       {std::vector<int>{-1}, std::vector<int>{-1, 1}, std::vector<int>{0, -1},
        std::vector<int>{-2, -1}}) {
    model.centroids.parents = parents;
    CHECK_FALSE(check_model(model, "m"));
  }
}
