#include "tests/workloads/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace cgphase::workloads;

namespace {

double total_seconds(const std::vector<Stage>& stages) {
  double sum = 0;
  for (const Stage& stage : stages) sum += std::chrono::duration<double>(stage.length).count();
  return sum;
}

long count_phase(const std::vector<Stage>& stages, const char* phase) {
  return std::count_if(stages.begin(), stages.end(),
                       [phase](const Stage& stage) { return stage.phase == phase; });
}

}  // namespace

TEST_CASE("plan: the stages add up to the planned length") {
  for (const double seconds : {30.0, 72.0, 300.0})
    for (const auto& stages :
         {train_plan(1, seconds), serve_plan(1, seconds), batch_plan(1, seconds)})
      CHECK(std::abs(total_seconds(stages) - seconds) <= 0.05 * static_cast<double>(stages.size()));
}

TEST_CASE("plan: a job of 72 s has two epochs, three bursts or three rounds") {
  CHECK(count_phase(train_plan(1, 72), "train") == 2);
  CHECK(count_phase(serve_plan(1, 72), "burst") == 3);
  CHECK(count_phase(batch_plan(1, 72), "sort") == 3);
}

TEST_CASE("plan: a batch job that waits is idle first, and works for the rest") {
  const auto stages = batch_plan(1, 150, 125);
  CHECK(stages.front().phase == "idle");
  CHECK(stages.front().length == std::chrono::seconds(125));
  CHECK(count_phase(stages, "sort") == 1);
  CHECK(std::abs(total_seconds(stages) - 150) <= 0.05 * static_cast<double>(stages.size()));
}

TEST_CASE("plan: another seed has the same stages with other lengths") {
  const auto first = train_plan(1, 72), other = train_plan(2, 72);
  REQUIRE(first.size() == other.size());
  bool differs = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].phase == other[i].phase);
    differs |= first[i].length != other[i].length;
  }
  CHECK(differs);
}

TEST_CASE("plan: even the shortest run has no empty stage") {
  for (const Stage& stage : train_plan(1, kMinSeconds)) CHECK(stage.length.count() > 0);
}

TEST_CASE("plan: requests arrive in order, none before the service started") {
  const auto stages = serve_plan(1, 72);
  const auto all = arrivals(1, stages);
  REQUIRE(!all.empty());
  CHECK(all.front().offset_seconds >= std::chrono::duration<double>(stages[0].length).count());
  CHECK(all.back().offset_seconds < total_seconds(stages));
  CHECK(std::is_sorted(all.begin(), all.end(), [](const Arrival& a, const Arrival& b) {
    return a.offset_seconds < b.offset_seconds;
  }));
}

TEST_CASE("plan: a burst has many times the requests of a lull of the same length") {
  const std::vector<Stage> stages = {{"lull", Milliseconds(20'000)},
                                     {"burst", Milliseconds(20'000)}};
  const auto all = arrivals(1, stages);
  const auto in_lull =
      std::count_if(all.begin(), all.end(), [](const Arrival& a) { return a.offset_seconds < 20; });
  CHECK(in_lull > 50);
  CHECK(in_lull < 150);
  CHECK(static_cast<long>(all.size()) - in_lull > 1400);
}

TEST_CASE("plan: the second model is requested from the second burst on") {
  const std::vector<Stage> stages = {{"burst", Milliseconds(9'000)},
                                     {"burst", Milliseconds(9'000)}};
  long early = 0, late = 0;
  for (const Arrival& arrival : arrivals(1, stages))
    (arrival.offset_seconds < 9 ? early : late) += arrival.model;
  CHECK(early == 0);
  CHECK(late > 50);
}

TEST_CASE("plan: the same seed gives the same requests") {
  const auto stages = serve_plan(4, 30);
  const auto first = arrivals(4, stages), again = arrivals(4, stages), other = arrivals(5, stages);
  REQUIRE(first.size() == again.size());
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i].key == again[i].key);
  CHECK((first.size() != other.size() || first[0].key != other[0].key));
}
