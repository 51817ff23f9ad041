#include "tests/workloads/result_sets.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/workloads/policy_results.h"
#include "tests/workloads/results_text.h"

using namespace cgphase;
using namespace cgphase::workloads;

namespace {

std::shared_ptr<const PhaseEngine> default_engine() {
  return PhaseEngine::create(
             load_model(CGPHASE_SOURCE_DIR "/model/default_model.json").value()).value();
}

const ResultPlaces kOwn{.recorded = CGPHASE_SOURCE_DIR "/tests/data", .others = ""};

}  // namespace

TEST_CASE("scored executions were not used for training") {
  const auto sets = read_result_sets(kOwn, {}).value();
  REQUIRE(sets.size() == 3);
  for (const ResultSet& set : sets) {
    CAPTURE(set.name);
    std::set<std::string> known;
    for (const Execution& execution : set.training) known.insert(execution.id);
    CHECK(known.size() == 4);
    REQUIRE(set.executions.size() == 2);
    for (const Execution& execution : set.executions) {
      CHECK_FALSE(known.contains(execution.id));
      CHECK(execution.service == set.training.front().service);
    }
  }
}

TEST_CASE("a missing directory is reported") {
  CHECK(read_result_sets({.recorded = "/nonexistent", .others = ""}, {}).error().text.find(
            "/nonexistent") != std::string::npos);
}

TEST_CASE("results show every policy that could run, and compare ours with the controls") {
  const auto sets = read_result_sets(kOwn, {}).value();
  const ResultEngines engines{.ours = default_engine(), .ai4dl = nullptr,
                              .ablations = {{"as shipped", default_engine()}}};
  ResultSet one = sets.front();
  one.executions.resize(1);
  const SetResults results = play_set(one, engines).value();
  const std::string text = results_text(std::span(&results, 1));
  for (const char* row : {"| static | 100.0 % |", "| oracle-max |", "| hold |", "| phase |",
                          "| ai4dl-phase |", "| as shipped |",
                          "| no earlier runs, trained CRBM (shipped) |", "## Goals"})
    CHECK_MESSAGE(text.find(row) != std::string::npos, row);
  CHECK(text.find("| ai4dl-phase-compat |") == std::string::npos);
  CHECK(text == results_text(std::span(&results, 1)));
  // The same phases give the same limits in either place.
  REQUIRE(results.ablations.size() == 2);
  const auto ours = points_of(results.ours.front(), Resource::memory);
  const auto ablated = points_of(results.ablations.front().sweep, Resource::memory);
  REQUIRE(ours.size() == ablated.size());
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i].cost == ablated[i].cost);
  // Without earlier runs the original limit stays during the warm-up.
  const std::size_t shipped = results.ours.front().shipped.value();
  CHECK(points_of(results.ablations.back().sweep, Resource::memory)[shipped].cost >
        ours[shipped].cost);
}
