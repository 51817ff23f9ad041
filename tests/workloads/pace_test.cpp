#include "tests/workloads/pace.h"

#include <doctest/doctest.h>

using namespace cgphase::workloads;

TEST_CASE("pace: a stage has at least one slot") {
  CHECK(slot_count(std::chrono::milliseconds(0)) == 1);
  CHECK(slot_count(kSlot * 2) == 2);
  CHECK(slot_count(kSlot * 3 - std::chrono::microseconds(1)) == 2);
}

TEST_CASE("spread: every unit is handed out once, in order, evenly") {
  for (const std::uint64_t units : {0U, 1U, 3U, 7U, 100U}) {
    Spread spread(kSlot * 3, units, Pace::Late::catch_up);
    std::uint64_t done = 0, begin = 0, end = 0, slots = 0;
    for (; spread.next(begin, end); ++slots) {
      CHECK(begin == done);
      CHECK(end - begin <= units / 3 + 1);
      done = end;
    }
    CHECK(done == units);
    CHECK(slots == 3);
  }
}
