// The whole workloads at their smallest size. Lengths and latencies depend on the machine and are
// not checked. Units and results depend only on the seed.
#include "tests/workloads/run.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>

#include "tests/workloads/plan.h"

using namespace cgphase;
using namespace cgphase::workloads;

namespace {

struct WorkDir {
  WorkDir() { REQUIRE(mkdtemp(path) != nullptr); }
  ~WorkDir() { std::filesystem::remove_all(path); }
  RunOptions options(std::uint64_t seed) const {
    return {.seed = seed, .size = 0.02, .seconds = kMinSeconds, .work_dir = path};
  }
  char path[32] = "/tmp/cgphase-work-XXXXXX";
};

}  // namespace

TEST_CASE_FIXTURE(WorkDir, "train: steps and loss are decided by the seed") {
  LabelFile labels;
  const auto first = run_train(options(1), labels), again = run_train(options(1), labels);
  REQUIRE(first.has_value());
  REQUIRE(again.has_value());
  CHECK(first->units > 0);
  CHECK(first->units == again->units);
  CHECK(first->outcome == again->outcome);
}

TEST_CASE_FIXTURE(WorkDir, "train: another seed trains to another loss") {
  LabelFile labels;
  const auto first = run_train(options(1), labels), other = run_train(options(2), labels);
  REQUIRE(first.has_value());
  REQUIRE(other.has_value());
  CHECK(first->outcome != other->outcome);
}

TEST_CASE_FIXTURE(WorkDir, "serve: every request that arrives is served") {
  LabelFile labels;
  const auto report = run_serve(options(1), labels);
  REQUIRE(report.has_value());
  CHECK(report->units == arrivals(1, serve_plan(1, kMinSeconds)).size());
}

TEST_CASE_FIXTURE(WorkDir, "batch: records and result are decided by the seed") {
  LabelFile labels;
  const auto first = run_batch(options(1), labels), again = run_batch(options(1), labels);
  const auto other = run_batch(options(2), labels);
  REQUIRE(first.has_value());
  REQUIRE(again.has_value());
  REQUIRE(other.has_value());
  CHECK(first->units == again->units);
  CHECK(first->outcome == again->outcome);
  CHECK(first->outcome != other->outcome);
}

TEST_CASE("run: a work directory that does not exist is an error, not a crash") {
  LabelFile labels;
  const RunOptions options{.size = 0.02, .seconds = kMinSeconds, .work_dir = "/nonexistent"};
  CHECK_FALSE(run_train(options, labels).has_value());
  CHECK_FALSE(run_serve(options, labels).has_value());
  CHECK_FALSE(run_batch(options, labels).has_value());
}
