#include "lab/replay/earlier_runs.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "policy/learned_json.h"
#include "policy/policy.h"

using namespace cgphase;

namespace {

// Learned state of `phase` after twenty seconds of one core.
LearnedState learned(double cores) {
  auto policy = make_policy("phase").value();
  for (int i = 0; i < 20; ++i)
    policy->observe({.time = MonotonicTime(std::chrono::seconds(i)), .interval_seconds = 1,
                     .cpu_cores = cores, .memory_need_bytes = 1e9, .cpu_limit_cores = 2.0,
                     .phase = {.state = PhaseState::known, .index = 0}});
  return policy->learned();
}

void expect_often(EarlierRuns& runs, const std::string& service, double begin_seconds, int times) {
  for (int i = 0; i < times; ++i) runs.expect(service, begin_seconds);
}

}  // namespace

TEST_CASE("a run has learned state only after another of its service ended") {
  EarlierRuns runs;
  expect_often(runs, "job", 100, 3);
  runs.ended("job", 100, 90, learned(1));
  CHECK(is_empty(runs.before("job", 50).learned));
  CHECK_FALSE(runs.before("job", 99).usual_seconds);
  const auto known = runs.before("job", 100);
  CHECK(learned_to_json(known.learned) == learned_to_json(merge_learned({}, learned(1))));
  CHECK(known.usual_seconds == 90);
}

TEST_CASE("other services have no effect") {
  EarlierRuns runs;
  runs.expect("service", 200);
  runs.expect("job", 200);
  runs.ended("job", 100, 90, learned(1));
  CHECK(is_empty(runs.before("service", 200).learned));
}

TEST_CASE("runs are merged in order of their end, each once") {
  EarlierRuns runs;
  expect_often(runs, "job", 1000, 3);
  runs.ended("job", 200, 30, learned(2));
  runs.ended("job", 100, 10, learned(1));
  runs.ended("job", 300, 20, learned(3));
  const auto merged = learned_to_json(merge_learned(
      merge_learned(merge_learned({}, learned(1)), learned(2)), learned(3)));
  CHECK(learned_to_json(runs.before("job", 1000).learned) == merged);
  CHECK(learned_to_json(runs.before("job", 1000).learned) == merged);
  CHECK(runs.before("job", 1000).usual_seconds == 20);
}

TEST_CASE("training runs end before all others") {
  EarlierRuns runs;
  runs.expect("job", EarlierRuns::kBeforeAll);
  runs.expect("job", 0);
  runs.ended("job", EarlierRuns::kBeforeAll, 10, learned(1));
  CHECK_FALSE(is_empty(runs.before("job", EarlierRuns::kBeforeAll).learned));
  CHECK_FALSE(is_empty(runs.before("job", 0).learned));
}

TEST_CASE("the courses of the last hundred runs are kept, oldest first") {
  EarlierRuns runs;
  expect_often(runs, "job", 1000, 2);
  CHECK(runs.before("job", 0).courses.empty());
  for (int i = 0; i <= 100; ++i)
    runs.ended("job", i, 1, {},
               std::make_shared<MemoryCourse>(MemoryCourse{{0}, {static_cast<double>(i)}}));
  runs.ended("job", 200, 1, {});  // without a course
  const EarlierRuns::Courses courses = runs.before("job", 1000).courses;
  REQUIRE(courses.size() == 100);
  CHECK(courses.front()->bytes.front() == 1);
  CHECK(courses.back()->bytes.front() == 100);
}

TEST_CASE("state that no later run may use is freed") {
  EarlierRuns runs;
  CHECK(runs.kept() == 0);
  expect_often(runs, "job", 50, 2);
  runs.ended("nobody's", 10, 10, learned(1));
  runs.ended("job", 51, 10, learned(1));  // all have begun by then
  CHECK(runs.kept() == 0);
  runs.ended("job", 50, 10, learned(1));
  CHECK(runs.kept() == 1);
  CHECK_FALSE(is_empty(runs.before("job", 50).learned));
  CHECK(runs.kept() == 1);
  CHECK_FALSE(is_empty(runs.before("job", 50).learned));
  CHECK(runs.kept() == 0);  // that was the last
}
