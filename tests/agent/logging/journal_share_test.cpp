#include "agent/logging/journal_share.h"

#include <doctest/doctest.h>

#include <chrono>

using namespace cgphase;
using namespace std::chrono_literals;

namespace {

int taken(JournalShare& share, const char* owner, int asked, MonotonicTime now) {
  int count = 0;
  for (int i = 0; i < asked; ++i) count += share.take(owner, now) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("of one user's containers ten refusals a minute are journaled, and no others are lost") {
  JournalShare share;
  const MonotonicTime begin{1h};
  CHECK(taken(share, "uid 1000", 5000, begin) == 300);
  CHECK(share.left_out() == 4700);
  CHECK(taken(share, "uid 1000", 5000, begin + 90s) == 15);
  CHECK(taken(share, "uid 1001", 20, begin + 90s) == 20);
  CHECK(taken(share, "/system.slice", 5000, begin + 90s) == 5000);
  CHECK(taken(share, "uid 1000", 5000, begin + 48h) == 300);
}

TEST_CASE("a clock that stands still or goes back gives a user no more of the journal") {
  JournalShare share;
  CHECK(taken(share, "uid 7", 4000, MonotonicTime{2h}) == 300);
  CHECK(taken(share, "uid 7", 10, MonotonicTime{1h}) == 0);
  CHECK(taken(share, "uid 7", 10, MonotonicTime{2h}) == 0);
}
