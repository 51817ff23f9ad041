#include "model/phase_sequence.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

PhaseSequence phase_sequence(std::string id, const std::vector<Phase>& steps) {
  PhaseSequence sequence{std::move(id), {}};
  for (const Phase& step : steps) sequence.add(step);
  return sequence;
}

Phase known(int index) { return {PhaseState::known, index, 0, 0}; }
Phase unknown(int nearest) { return {PhaseState::unknown, nearest, 0, 0}; }

PhaseSequence of_runs(std::size_t count) {
  PhaseSequence sequence;
  sequence.runs.assign(count, {0, 1});
  return sequence;
}

}  // namespace

TEST_CASE("consecutive steps with the same phase are one run") {
  const std::vector<Phase> steps = {known(2), known(2), known(0), known(2)};
  const PhaseSequence sequence = phase_sequence("job", steps);
  CHECK(sequence.id == "job");
  CHECK(sequence.runs == std::vector<PhaseRun>{{2, 2}, {0, 1}, {2, 1}});
}

TEST_CASE("an unknown phase is a run of its own, for any nearest centroid") {
  const std::vector<Phase> steps = {known(1), unknown(1), unknown(0), known(1)};
  CHECK(phase_sequence("", steps).runs ==
        std::vector<PhaseRun>{{1, 1}, {kUnknownPhase, 2}, {1, 1}});
}

TEST_CASE("steps without enough history are skipped and do not split a phase") {
  const std::vector<Phase> steps = {Phase{}, Phase{}, known(3), Phase{}, known(3)};
  CHECK(phase_sequence("", steps).runs == std::vector<PhaseRun>{{3, 2}});
  CHECK(phase_sequence("", std::vector<Phase>(3)).runs.empty());
}

TEST_CASE("executions without a phase are counted, not kept") {
  PhaseSequences sequences;
  REQUIRE(sequences.add({"short", {}}, "f"));
  REQUIRE(sequences.add({"long", {{1, 5}}}, "f"));
  CHECK(sequences.without_phase_count() == 1);
  REQUIRE(sequences.with_phases().size() == 1);
  CHECK(sequences.with_phases()[0].id == "long");
}

TEST_CASE("the execution limit accepts the last execution and refuses one more") {
  PhaseSequences sequences;
  for (std::size_t i = 0; i + 1 < kMaxSequences; ++i) REQUIRE(sequences.add({}, "f"));
  REQUIRE(sequences.add(of_runs(1), "f"));
  const Status status = sequences.add({}, "f.csv: line 7");
  REQUIRE(!status);
  CHECK(status.error().kind == ErrorKind::invalid);
  CHECK(status.error().text ==
        "f.csv: line 7: more than 200000 executions; pass fewer files at once");
}

TEST_CASE("the run limit accepts the last run and refuses one more") {
  PhaseSequences sequences;
  REQUIRE(sequences.add(of_runs(kMaxSequenceRuns - 1), "f"));
  const Status status = sequences.add(of_runs(2), "f.csv");
  REQUIRE(!status);
  CHECK(status.error().text ==
        "f.csv: the phases change more than 2000000 times in all; pass fewer files at once");
  CHECK(sequences.add(of_runs(1), "f"));
}
