#include "policy/phase/foreseen_limit.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

constexpr double kSmallRisk = 0.001;
constexpr double kFastPath = 0.95;
constexpr double kRoom = 1.0004 / kFastPath;
constexpr EarlierPeak kNothing{};

void feed(ForeseenLimit& limit, double demand, int samples, const MomentPeak& moment = {}) {
  for (int i = 0; i < samples; ++i) limit.add(demand, 1, moment);
}

// For CPU, after a run of 100 samples with a peak of 4.
ForeseenLimit after_one_run() { return {kSmallRisk, kFastPath, false, {1, 100, 4, 0}}; }

}  // namespace

TEST_CASE("a first run has no opinion before ten samples") {
  ForeseenLimit limit(kSmallRisk, kFastPath, false, kNothing);
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

TEST_CASE("a quiet start lowers nothing while earlier runs expect more") {
  ForeseenLimit limit = after_one_run();
  feed(limit, 0.1, 59);
  CHECK(*limit.level() > 4);
}

TEST_CASE("a run below its predecessors counts alone after a window") {
  ForeseenLimit limit = after_one_run();
  feed(limit, 0.1, 120);
  CHECK(*limit.level() < 0.2);
}

TEST_CASE("a run above the bound of earlier runs gets more room than before") {
  ForeseenLimit kept = after_one_run(), passed = after_one_run();
  feed(kept, 4, 20);
  feed(passed, 5, 20);
  CHECK(*passed.level() / 5 > *kept.level() / 4);
}

TEST_CASE("demand after similar moments lowers the limit if there are enough of them") {
  ForeseenLimit few = after_one_run(), many = after_one_run(), once = after_one_run();
  feed(few, 0.1, 40, {0, 3, 3, 0.2, 0});
  feed(many, 0.1, 40, {0, 300, 3, 0.2, 0});
  feed(once, 0.1, 40, {0, 300, 2, 0.2, 0});
  CHECK(*few.level() > 4);
  CHECK(*once.level() > 4);
  CHECK(*many.level() < 0.25);
}

TEST_CASE("a moment that is usually followed by more raises the limit in advance") {
  ForeseenLimit limit = after_one_run();
  feed(limit, 0.1, 40, {0, 300, 3, 0.2, 0});
  feed(limit, 0.1, 1, {0, 300, 3, 4, 4});
  CHECK(*limit.level() > 4);
}

TEST_CASE("memory keeps room for twice the steepest rise per second, of this and earlier runs") {
  ForeseenLimit own(kSmallRisk, kFastPath, true, kNothing);
  own.add(1000, 0, {});
  own.add(1500, 1, {});
  feed(own, 100, 400);
  CHECK(own.level() == doctest::Approx(kRoom * 2 * 500));
  ForeseenLimit earlier(kSmallRisk, kFastPath, true, {1, 100, 2000, 700});
  feed(earlier, 100, 400);
  CHECK(earlier.level() == doctest::Approx(kRoom * 2 * 700));
}

TEST_CASE("a ramp of memory never reaches its limit") {
  ForeseenLimit limit(kSmallRisk, kFastPath, true, kNothing);
  double demand = 1000;
  for (int i = 0; i < 20; ++i) limit.add(demand += 5, i == 0 ? 0 : 1, {});
  for (int i = 0; i < 500; ++i) {
    demand += 20;
    if (i > 0) CHECK(demand <= *limit.level());
    limit.add(demand, 1, {});
  }
}

TEST_CASE("a repeated jump between samples a few seconds apart stays within the limit") {
  // From 100 to 500 within four seconds at an unknown speed. With a threshold of 95 % and a
  // reaction time of 0.1 s, the fast path answers a rise of half the limit per second in time.
  ForeseenLimit limit(kSmallRisk, kFastPath, true, kNothing);
  limit.add(100, 0, {});
  limit.add(500, 4, {});
  for (int i = 0; i < 400; ++i) limit.add(100, 4, {});
  CHECK(*limit.level() >= 2 * 400);
}

TEST_CASE("demand to keep ready is included, regardless of the bounds") {
  ForeseenLimit limit(kSmallRisk, kFastPath, true, kNothing);
  feed(limit, 100, 400, {0, 0, 0, 0, 0, 300});
  CHECK(limit.level() == doctest::Approx(kRoom * 300));
}

TEST_CASE("a limit that was never exceeded is loosened as far as the risk allows") {
  ForeseenLimit never(0.05, kFastPath, false, kNothing), often(0.05, kFastPath, false, kNothing);
  for (int i = 0; i < 300; ++i) {
    never.add(1 + 0.1 * (i % 7), 1, {});
    often.add(i % 20 == 19 ? 1.3 * *often.level() : 1 + 0.1 * (i % 7), 1, {});
  }
  CHECK(never.coming() < 1.6);
  CHECK(never.coming() < often.coming());
}
