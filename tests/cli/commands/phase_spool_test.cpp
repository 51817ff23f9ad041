#include "cli/commands/phase_spool.h"

#include <doctest/doctest.h>

#include "tests/model/allocated.h"

using namespace cgphase;

namespace {

PhaseSpool::Row row(std::size_t number) {
  return {WallTime(std::chrono::nanoseconds(number)),
          {PhaseState::known, static_cast<int>(number % 5), 0.5 * static_cast<double>(number), 2}};
}

// Adds `rows` numbered rows to the executions in turn, and reads all of them back.
void check_in_turns(std::size_t rows, std::size_t executions) {
  CAPTURE(rows);
  CAPTURE(executions);
  PhaseSpool spool;
  for (std::size_t i = 0; i < rows; ++i) REQUIRE(spool.add(i % executions, row(i)));
  std::size_t right = 0;
  for (std::size_t execution = 0; execution < executions; ++execution) {
    std::size_t next = execution;
    REQUIRE(spool.read(execution, [&](std::span<const PhaseSpool::Row> piece) -> Status {
      for (const PhaseSpool::Row& one : piece) {
        const PhaseSpool::Row expected = row(next);
        right += one.time == expected.time && one.phase.distance == expected.phase.distance &&
                 one.phase.index == expected.phase.index;
        next += executions;
      }
      return {};
    }));
  }
  CHECK(right == rows);
}

}  // namespace

TEST_CASE("phases come back execution by execution, in order, from memory and from the file") {
  constexpr std::size_t kMost = PhaseSpool::kRowsInMemory;
  for (const std::size_t executions : {1, 2, 7, 1000})
    for (const std::size_t rows : {std::size_t{0}, std::size_t{5000}, kMost - 1, kMost, kMost + 1,
                                   3 * kMost + 11})
      check_in_turns(rows, executions);
}

TEST_CASE("memory does not grow with executions that follow one another") {
  const auto most_held = [](std::size_t executions) {
    PhaseSpool spool;
    const test::PeakAllocation peak;
    for (std::size_t i = 0; i < executions * PhaseSpool::kRowsInMemory; ++i)
      REQUIRE(spool.add(i / PhaseSpool::kRowsInMemory, row(i)));
    return peak.bytes();
  };
  CHECK(most_held(8) < most_held(2) + PhaseSpool::kRowsInMemory * sizeof(PhaseSpool::Row) / 2);
}

TEST_CASE("an execution without rows is empty, and a failing reader stops the reading") {
  PhaseSpool spool;
  REQUIRE(spool.add(3, row(1)));
  int calls = 0;
  const auto refuse = [&](std::span<const PhaseSpool::Row>) -> Status {
    ++calls;
    return failure(ErrorKind::io, "full");
  };
  CHECK(spool.read(0, refuse));
  CHECK(spool.read(9, refuse));
  CHECK(calls == 0);
  CHECK(spool.read(3, refuse).error().text == "full");
  CHECK(calls == 1);
}
