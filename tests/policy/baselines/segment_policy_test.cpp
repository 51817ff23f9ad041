#include "policy/baselines/segment_policy.h"

#include <doctest/doctest.h>

#include "tests/policy/policy_run.h"

using namespace cgphase;
using doctest::Approx;

namespace {

// One earlier run: 100 MiB for 10 s, then 300 MiB up to second 20.
PolicyEnvironment known_step() {
  auto course = std::make_shared<MemoryCourse>();
  for (int second = 0; second <= 20; ++second) {
    course->seconds.push_back(second);
    course->bytes.push_back((second < 10 ? 100 : 300) * kMib);
  }
  PolicyEnvironment around;
  around.earlier_courses = {course};
  return around;
}

}  // namespace

TEST_CASE("ks-plus allocates one predicted segment after the other, and no CPU") {
  PolicyRun run("ks-plus:segments=2", {}, known_step());
  run.feed(1, 90 * kMib, 7);
  CHECK(run.mib() == Approx(110));
  CHECK_FALSE(run.allocation().cpu);
  // Second 7. The next segment starts at 8.5, before the sample after the next.
  run.feed(1, 90 * kMib, 1);
  CHECK(run.mib() == Approx(110));
  run.feed(1, 90 * kMib, 1);
  CHECK(run.mib() == Approx(330));
}

TEST_CASE("ks-plus starts the next segment when need exceeds one, and raises the last by 20 %") {
  PolicyRun run("ks-plus:segments=2", {}, known_step());
  run.feed(1, 90 * kMib, 3);
  run.feed(1, 120 * kMib);
  CHECK(run.mib() == Approx(330));
  run.feed(1, 340 * kMib);
  CHECK(run.mib() == Approx(396));
  run.feed(1, 400 * kMib);
  CHECK(run.mib() == Approx(475.2));
}

TEST_CASE("k-segments doubles only the segment that need exceeds") {
  PolicyRun run("k-segments:segments=2", {}, known_step());
  run.feed(1, 90 * kMib, 3);
  CHECK(run.mib() == Approx(100));
  run.feed(1, 250 * kMib);
  CHECK(run.mib() == Approx(400));
  run.feed(1, 250 * kMib, 6);
  CHECK(run.mib() == Approx(300));
}

TEST_CASE("without earlier runs there is no opinion") {
  PolicyEnvironment around;
  around.earlier_courses.emplace();
  for (const auto name : {"ks-plus", "k-segments"}) {
    PolicyRun run(name, {}, around);
    run.feed(1, 100 * kMib, 20);
    CHECK_FALSE(run.allocation().memory);
  }
}

TEST_CASE("an earlier run without need does not block corrections") {
  auto course = std::make_shared<MemoryCourse>();
  course->seconds = {0};
  course->bytes = {0};
  PolicyEnvironment around;
  around.earlier_courses = {course, std::make_shared<MemoryCourse>()};
  for (const auto name : {"ks-plus", "k-segments"}) {
    PolicyRun run(name, {}, around);
    run.feed(1, 100 * kMib);
    CHECK(run.mib() >= 100);
    CHECK(run.mib() <= 200);
  }
}

TEST_CASE("the daemon, which has no courses, refuses both") {
  for (const auto name : {"ks-plus", "k-segments"}) {
    const auto made = make_policy(name);
    REQUIRE_FALSE(made);
    CHECK(made.error().text == std::string("policy \"") + name +
                                   "\" must know the courses of earlier runs, which only cgphase "
                                   "replay does");
  }
}
