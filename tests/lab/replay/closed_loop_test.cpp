#include "lab/replay/closed_loop.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "model/train/random.h"

using namespace cgphase;
using doctest::Approx;

namespace {

constexpr ClosedLoop kLoop{.enabled = true};

ResourceLoop loop_at(Resource resource, double ceiling, double limit, ClosedLoop loop = kLoop) {
  ResourceLoop made(loop, resource, ceiling);
  made.set(limit);
  return made;
}

// The same loop in small time steps, with the guard checking each.
class SteppedLoop {
 public:
  SteppedLoop(double ceiling, double limit) : ceiling_(ceiling), limit_(limit) {}
  static constexpr int kSteps = 20'000;  // per second

  void set(double limit) { limit_ = std::min(limit, ceiling_); }
  LoopInterval run(double seconds, double from, double to) {
    LoopInterval sums;
    const double dt = 1.0 / kSteps;
    const int steps = static_cast<int>(std::lround(seconds * kSteps));
    if (from < 0.95 * limit_ || limit_ >= ceiling_) wait_ = -1;
    for (int i = 0; i < steps; ++i) {
      const double demand = from + (to - from) * (i + 0.5) / steps;
      if (wait_ < 0 && limit_ < ceiling_ && demand >= 0.95 * limit_) wait_ = 0.1;
      if (wait_ >= 0 && (wait_ -= dt) <= 0) {
        limit_ = std::min(limit_ * 1.2, ceiling_);
        wait_ = -1;
        sums.raises += 1;
      }
      sums.allocated += limit_ * dt;
      const double wanted = demand * dt + backlog_;
      const double served = std::min(wanted, limit_ * dt);
      sums.served += served;
      sums.waited += std::max(0.0, demand - limit_) * dt;
      backlog_ = wanted - served;
      if (backlog_ > 1e-9) sums.throttled_seconds += dt;
    }
    return sums;
  }
  double limit() const { return limit_; }
  double backlog() const { return backlog_; }

 private:
  double ceiling_, limit_, backlog_ = 0, wait_ = -1;
};

}  // namespace

TEST_CASE("the limit starts at the ceiling") {
  CHECK(ResourceLoop(kLoop, Resource::cpu, 3).limit() == 3);
}

TEST_CASE("demand well below the limit causes nothing") {
  auto loop = loop_at(Resource::cpu, 2, 1);
  const LoopInterval interval = loop.run(10, 0.5, 0.5);
  CHECK(interval.allocated == Approx(10));
  CHECK(interval.served == Approx(5));
  CHECK(interval.slack_seconds == Approx(5));  // half of the limit for ten seconds
  CHECK(interval.raises == 0);
  CHECK(interval.overrun == 0);
  CHECK_FALSE(interval.passed);
}

TEST_CASE("CPU is raised by a fifth 100 ms after demand comes within 5 % of the limit") {
  // Demand rises from 0 to 2 in two seconds. It crosses at 0.95, 1.14, 1.368 and 1.6416 cores and
  // seconds; 0.1 s later the limit becomes 1.2, 1.44, 1.728 and the ceiling.
  auto loop = loop_at(Resource::cpu, 2, 1);
  const LoopInterval interval = loop.run(2, 0, 2);
  CHECK(interval.raises == 4);
  CHECK(loop.limit() == 2);
  CHECK(interval.allocated ==
        Approx(1 * 1.05 + 1.2 * 0.19 + 1.44 * 0.228 + 1.728 * 0.2736 + 2 * 0.2584));
  // Over the limit in triangles: from 1 to 1.05, 1.2 to 1.24, 1.44 to 1.468 and 1.728 to 1.7416.
  CHECK(interval.overrun ==
        Approx((0.05 * 0.05 + 0.04 * 0.04 + 0.028 * 0.028 + 0.0136 * 0.0136) / 2));
  CHECK(interval.waited == Approx(interval.overrun));
  CHECK(interval.served == Approx(2));  // all of it was worked off
  CHECK(interval.passed);
  CHECK(interval.lowest_limit == 1);
}

TEST_CASE("unmet CPU demand waits and is worked off") {
  auto loop = loop_at(Resource::cpu, 1, 1);  // at the ceiling: nothing to raise
  const LoopInterval busy = loop.run(1, 2, 2);
  CHECK(busy.waited == Approx(1));
  CHECK(busy.served == Approx(1));
  CHECK(busy.longest_delay_seconds == Approx(1));
  CHECK(loop.backlog() == Approx(1));
  CHECK_FALSE(busy.passed);  // the user's own limit
  const LoopInterval calm = loop.run(4, 0.5, 0.5);
  CHECK(calm.served == Approx(3));  // 2 of this interval and 1 that waited
  CHECK(calm.throttled_seconds == Approx(2));
  CHECK(loop.backlog() == 0);
}

TEST_CASE("a backlog meets falling demand") {
  // Demand falls from 2 to 0 in two seconds; the limit is 1. Half a core-second queues in the first
  // second, and the second one works it off exactly at its end.
  auto loop = loop_at(Resource::cpu, 1, 1);
  const LoopInterval interval = loop.run(2, 2, 0);
  CHECK(interval.waited == Approx(0.5));
  CHECK(interval.throttled_seconds == Approx(2));
  CHECK(loop.backlog() == Approx(0).epsilon(1e-9));
}

TEST_CASE("memory is raised to the ceiling in time if demand rises slowly enough") {
  // 20 per second: 47.5 is reached at 0.375 s, and the raise comes at 0.475 s with a demand of
  // 49.5.
  auto loop = loop_at(Resource::memory, 100, 50);
  const LoopInterval interval = loop.run(1, 40, 60);
  CHECK_FALSE(interval.passed);
  CHECK(interval.raises == 1);
  CHECK(loop.limit() == 100);
  CHECK(interval.allocated == Approx(50 * 0.475 + 100 * 0.525));
}

TEST_CASE("memory that would pass the limit within the growth time is near it, CPU is not") {
  constexpr ClosedLoop kGrowing{.enabled = true, .growth_seconds = 2};
  const auto raises = [&](Resource resource, double to) {
    return loop_at(resource, 100, 50, kGrowing).run(1, 20, to).raises;
  };
  CHECK(raises(Resource::memory, 29) == 0);  // 29 + 2 s x 9
  CHECK(raises(Resource::memory, 32) == 1);
  CHECK(raises(Resource::memory, 12) == 0);
  CHECK(raises(Resource::cpu, 32) == 0);
}

TEST_CASE("memory that rises by more than the last 5 % in 100 ms would be killed") {
  // 60 per second: 47.5 is reached at 0.125 s, and the raise comes at 0.225 s with a demand of
  // 53.5.
  auto loop = loop_at(Resource::memory, 100, 50);
  CHECK(loop.run(1, 40, 100).passed);
}

TEST_CASE("a limit set below the need would be killed at once") {
  auto loop = loop_at(Resource::memory, 100, 30);
  CHECK(loop.run(1, 40, 40).passed);
}

TEST_CASE("a pending raise carries over to the next interval") {
  auto loop = loop_at(Resource::memory, 100, 50);
  // 47.5 is reached 0.05 s before the end.
  const LoopInterval first = loop.run(1, 38, 48);
  CHECK(first.raises == 0);
  const LoopInterval second = loop.run(1, 48, 48);
  CHECK(second.raises == 1);
  CHECK(second.allocated == Approx(50 * 0.05 + 100 * 0.95));
}

TEST_CASE("a policy that raises first cancels the guard's raise") {
  auto loop = loop_at(Resource::memory, 100, 50);
  loop.run(1, 38, 48);
  loop.set(60);
  CHECK(loop.run(1, 48, 48).raises == 0);
  CHECK(loop.limit() == 60);
}

TEST_CASE("without the loop nothing is raised and nothing waits") {
  auto loop = loop_at(Resource::cpu, 2, 1, ClosedLoop{});
  const LoopInterval interval = loop.run(2, 2, 2);
  CHECK(interval.raises == 0);
  CHECK(interval.waited == 0);
  CHECK(interval.overrun == Approx(2));
  CHECK(interval.served == Approx(4));
  CHECK(loop.limit() == 1);
}

TEST_CASE("a gap clears the backlog") {
  auto loop = loop_at(Resource::cpu, 1, 1);
  loop.run(1, 2, 2);
  loop.gap();
  CHECK(loop.backlog() == 0);
}

TEST_CASE("the loop agrees with a simulation in steps of 50 us") {
  Random random(7);
  for (int run = 0; run < 40; ++run) {
    CAPTURE(run);
    const double ceiling = 1 + 3 * random.uniform();
    const double limit = ceiling * (0.2 + 0.8 * random.uniform());
    auto loop = loop_at(Resource::cpu, ceiling, limit);
    SteppedLoop stepped(ceiling, limit);
    double demand = limit * random.uniform();
    for (int i = 0; i < 6; ++i) {
      const double to = 1.2 * ceiling * random.uniform();
      const LoopInterval exact = loop.run(1, demand, to);
      const LoopInterval naive = stepped.run(1, demand, to);
      // Each raise and each crossing may be one step off.
      const double step = (exact.raises + 2) * ceiling * 4.0 / SteppedLoop::kSteps;
      CHECK(std::abs(exact.allocated - naive.allocated) < step);
      CHECK(std::abs(exact.served - naive.served) < step);
      CHECK(std::abs(loop.backlog() - stepped.backlog()) < step);
      CHECK(std::abs(exact.waited - naive.waited) < step);
      demand = to;
      if (i % 2 != 0) continue;
      const double wanted = ceiling * (0.2 + 0.8 * random.uniform());
      loop.set(wanted);
      stepped.set(wanted);
    }
  }
}
