#include "agent/stored_runs.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "policy/learned_json.h"

using namespace cgphase;

namespace {

using nlohmann::json;

LearnedUsage runs(int count) {
  LearnedUsage usage("vpa", {{0.01, 100}, {1e7, 400}});
  usage.cpu_cores.add(1, 1, 0);
  usage.runs = count;
  return usage;
}

int runs_in(const LearnedState& learned) {
  const auto* usage = std::get_if<LearnedUsage>(&learned);
  return usage == nullptr ? 0 : usage->runs;
}

json row_of_two_daemons() {
  return stored_runs_to_json({.ended = runs(3), .unended = StoredRuns::Unended{"a", runs(1)}});
}

}  // namespace

TEST_CASE("a row of ended runs is what they learned") {
  const json row = stored_runs_to_json({.ended = runs(3), .unended = {}});
  CHECK(row == learned_to_json(runs(3)));
  const StoredRuns read = stored_runs_from_json(row);
  CHECK(runs_in(read.ended) == 3);
  CHECK_FALSE(read.unended.has_value());
}

TEST_CASE("a row with runs that have not ended is read back as written") {
  const json row = row_of_two_daemons();
  CHECK(row["runs"] == 3);
  CHECK(row["unended"]["daemon"] == "a");
  CHECK(row["unended"]["learned"]["runs"] == 1);
  CHECK(stored_runs_to_json(stored_runs_from_json(row)) == row);
}

TEST_CASE("runs count as lost only for another daemon than the one that observed them") {
  const StoredRuns stored = stored_runs_from_json(row_of_two_daemons());
  CHECK_FALSE(stored.has_lost_runs("a"));
  CHECK(runs_in(stored.without_live_runs("a")) == 3);
  CHECK(stored.has_lost_runs("b"));
  CHECK(runs_in(stored.without_live_runs("b")) == 4);
}

TEST_CASE("a row may have only runs that have not ended") {
  const json row = stored_runs_to_json({{}, StoredRuns::Unended{"a", runs(1)}});
  const StoredRuns stored = stored_runs_from_json(row);
  CHECK(is_empty(stored.ended));
  CHECK(runs_in(stored.without_live_runs("b")) == 1);
}

TEST_CASE("a damaged part of a row is empty") {
  for (const json& row : {json(nullptr), json(5), json("text"), json::array(), json{{"runs", 1}}})
    CHECK(is_empty(stored_runs_from_json(row).without_live_runs("b")));
  for (const json& unended : {json(nullptr), json(5), json::array(), json::object()}) {
    json row = row_of_two_daemons();
    row["unended"] = unended;
    CHECK(runs_in(stored_runs_from_json(row).without_live_runs("b")) == 3);
  }
  json row = row_of_two_daemons();
  row["unended"]["learned"] = 5;
  CHECK(runs_in(stored_runs_from_json(row).without_live_runs("b")) == 3);
  row = row_of_two_daemons();
  row["unended"]["daemon"] = 5;
  CHECK(runs_in(stored_runs_from_json(row).without_live_runs("a")) == 4);
}
