#include "lab/replay/sweep_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace cgphase;

TEST_CASE("our policies are swept over the risk, and that of the settings is shipped") {
  ReplaySettings settings;
  settings.risk = 0.001;
  const SweepPlan plan = sweep_plan({"phase", {}}, settings);
  REQUIRE(plan.shipped);
  CHECK(plan.names[*plan.shipped] == "risk 0.1 %");
  CHECK(plan.entrants.front().settings.risk == 0.0002);
  CHECK(plan.entrants.back().settings.risk == 0.1);
  for (const Entrant& entrant : plan.entrants) CHECK(entrant.contender.margin == 0);
}

TEST_CASE("the user's risk is among those tried, in order") {
  ReplaySettings settings;
  settings.risk = 0.003;
  const SweepPlan plan = sweep_plan({"phase", {}}, settings);
  CHECK(plan.entrants[*plan.shipped].settings.risk == 0.003);
  CHECK(plan.entrants[*plan.shipped + 1].settings.risk == 0.005);
}

TEST_CASE("other policies are swept over the margin, and no margin is shipped") {
  const SweepPlan plan = sweep_plan({"hold", {{"window", 20}}}, {});
  CHECK(plan.name == "hold:window=20");
  CHECK(plan.entrants.front().contender.margin == -0.3);
  CHECK(plan.entrants.back().contender.margin == 1);
  CHECK(plan.entrants[*plan.shipped].contender.margin == 0);
  CHECK(plan.names.back() == "margin +100 %");
}

TEST_CASE("the user's limit and the oracles are not swept") {
  CHECK(sweep_plan({"static", {}}, {}).entrants.size() == 1);
  CHECK(sweep_plan({"oracle-max", {}}, {}).shipped == 0);
}

TEST_CASE("the controls are many, and none of them is shipped") {
  const SweepPlan plan = control_plan({});
  CHECK(plan.name == "controls");
  CHECK(plan.entrants.size() > 10);
  CHECK(plan.names.size() == plan.entrants.size());
  CHECK_FALSE(plan.shipped.has_value());
}

TEST_CASE("a contest runs equal replays once") {
  Contest contest;
  const std::size_t first = contest.enter({{{"hold", {}}, 0}, {}});
  CHECK(contest.enter({{{"hold", {}}, 0.1}, {}}) != first);
  CHECK(contest.enter({{{"hold", {}}, 0}, {}, true}) == first);
  ReplaySettings risky;
  risky.risk = 0.5;
  CHECK(contest.enter({{{"hold", {}}, 0}, risky}) != first);
}
