#include "policy/phase/foreseen_limit.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

constexpr double kSmallRisk = 0.001;
constexpr double kGuard = 0.95;
constexpr double kRoom = 1.0004 / kGuard;
constexpr EarlierPeak kNothing{};

void feed(ForeseenLimit& limit, double demand, int samples, const MomentPeak& moment = {}) {
  for (int i = 0; i < samples; ++i) limit.add(demand, 1, moment);
}

// Of CPU, after a run of 100 samples that reached 4.
ForeseenLimit after_one_run() { return {kSmallRisk, kGuard, false, {1, 100, 4, 0}}; }

}  // namespace

TEST_CASE("a first run says nothing before ten samples") {
  ForeseenLimit limit(kSmallRisk, kGuard, false, kNothing);
  feed(limit, 2, 9);
  CHECK_FALSE(limit.level().has_value());
  feed(limit, 2, 1);
  CHECK(limit.level() == doctest::Approx(kRoom * widened(2, 10, kSmallRisk)));
}

TEST_CASE("with one earlier run the first sample has the limit of that run's peak") {
  ForeseenLimit limit = after_one_run();
  feed(limit, 0.1, 1);
  CHECK(limit.level() == doctest::Approx(kRoom * widened(4, 301, kSmallRisk)));
  CHECK(*limit.level() < 4 * 1.25);
}

TEST_CASE("while earlier runs know what is to come, a quiet start lowers nothing") {
  ForeseenLimit limit = after_one_run();
  feed(limit, 0.1, 59);
  CHECK(*limit.level() > 4);
}

TEST_CASE("a run that stays below its predecessors speaks for itself after a window") {
  ForeseenLimit limit = after_one_run();
  feed(limit, 0.1, 120);
  CHECK(*limit.level() < 0.2);
}

TEST_CASE("a run that passes what was promised gets more room than before") {
  ForeseenLimit kept = after_one_run(), passed = after_one_run();
  feed(kept, 4, 20);
  feed(passed, 5, 20);
  CHECK(*passed.level() / 5 > *kept.level() / 4);
}

TEST_CASE("what followed moments like this one lowers the limit when there were enough of them") {
  ForeseenLimit few = after_one_run(), many = after_one_run(), once = after_one_run();
  feed(few, 0.1, 40, {0, 3, 3, 0.2, 0});
  feed(many, 0.1, 40, {0, 300, 3, 0.2, 0});
  feed(once, 0.1, 40, {0, 300, 2, 0.2, 0});
  CHECK(*few.level() > 4);
  CHECK(*once.level() > 4);
  CHECK(*many.level() < 0.25);
}

TEST_CASE("a moment that is usually followed by more raises the limit before it comes") {
  ForeseenLimit limit = after_one_run();
  feed(limit, 0.1, 40, {0, 300, 3, 0.2, 0});
  feed(limit, 0.1, 1, {0, 300, 3, 4, 4});
  CHECK(*limit.level() > 4);
}

TEST_CASE("memory keeps twice the steepest rise per second, its own and that of earlier runs") {
  ForeseenLimit own(kSmallRisk, kGuard, true, kNothing);
  own.add(1000, 0, {});
  own.add(1500, 1, {});
  feed(own, 100, 400);
  CHECK(own.level() == doctest::Approx(kRoom * 2 * 500));
  ForeseenLimit earlier(kSmallRisk, kGuard, true, {1, 100, 2000, 700});
  feed(earlier, 100, 400);
  CHECK(earlier.level() == doctest::Approx(kRoom * 2 * 700));
}

TEST_CASE("a ramp of memory never reaches its limit") {
  ForeseenLimit limit(kSmallRisk, kGuard, true, kNothing);
  double demand = 1000;
  for (int i = 0; i < 20; ++i) limit.add(demand += 5, i == 0 ? 0 : 1, {});
  for (int i = 0; i < 500; ++i) {
    demand += 20;
    if (i > 0) CHECK(demand <= *limit.level());
    limit.add(demand, 1, {});
  }
}

TEST_CASE("a jump seen between samples some seconds apart does not pass the limit the next time") {
  // 100 to 500 within four seconds; nobody saw how fast it was. A guard at 95 % that takes 0.1 s
  // is in time for what rises by half of the limit in a second.
  ForeseenLimit limit(kSmallRisk, kGuard, true, kNothing);
  limit.add(100, 0, {});
  limit.add(500, 4, {});
  for (int i = 0; i < 400; ++i) limit.add(100, 4, {});
  CHECK(*limit.level() >= 2 * 400);
}

TEST_CASE("what is to be kept ready is, whatever the bounds say") {
  ForeseenLimit limit(kSmallRisk, kGuard, true, kNothing);
  feed(limit, 100, 400, {0, 0, 0, 0, 0, 300});
  CHECK(limit.level() == doctest::Approx(kRoom * 300));
}

TEST_CASE("a limit that was never passed is loosened by as much as the risk allows") {
  ForeseenLimit never(0.05, kGuard, false, kNothing), often(0.05, kGuard, false, kNothing);
  for (int i = 0; i < 300; ++i) {
    never.add(1 + 0.1 * (i % 7), 1, {});
    often.add(i % 20 == 19 ? 1.3 * *often.level() : 1 + 0.1 * (i % 7), 1, {});
  }
  CHECK(never.coming() < 1.6);
  CHECK(never.coming() < often.coming());
}
