#include "lab/replay/lineup.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "policy/policy.h"

using namespace cgphase;

namespace {

Lineup line_up(const LineupOptions& options) {
  const auto lineup = cgphase::line_up(options, {});
  REQUIRE(lineup);
  return *lineup;
}

// The policy, margin and rails of the entrant that a name refers to.
std::string meant(const Lineup& lineup, const std::string& name) {
  const auto found = std::ranges::find(lineup.names, name);
  if (found == lineup.names.end()) return "nobody";
  const Entrant& entrant =
      lineup.entrants[lineup.named[static_cast<std::size_t>(found - lineup.names.begin())]];
  return to_string(entrant.contender.policy) + " " + std::to_string(entrant.contender.margin) +
         (entrant.settings.safety ? " rails" : "");
}

}  // namespace

TEST_CASE(
    "the default policies are ours, the best without phases, the oracle and the user's limits") {
  const Lineup lineup = line_up({});
  CHECK_FALSE(lineup.all);
  CHECK(lineup.policies.front().name == "phase");
  CHECK(meant(lineup, "hold") == "hold 0.000000");
  CHECK(meant(lineup, "static") == "static 0.000000");
}

TEST_CASE("all means every policy, each once") {
  const Lineup lineup = line_up({.policies = {"hold", "all"}});
  CHECK(lineup.all);
  CHECK(lineup.policies.size() == policy_names().size());
  CHECK(lineup.policies.front().name == "hold");
}

TEST_CASE("a name without a margin means the first margin") {
  const Lineup lineup = line_up({.policies = {"hold"}, .margins = {0.05, 0}});
  CHECK(lineup.entrants.size() == 2);
  CHECK(meant(lineup, "hold") == "hold 0.050000");
  CHECK(meant(lineup, "hold@5") == "hold 0.050000");
  CHECK(meant(lineup, "hold@0") == "hold 0.000000");
}

TEST_CASE("our policies are replayed alone and with rails, others only alone") {
  const Lineup lineup = line_up({.policies = {"phase,hold"}, .margins = {0, 0.05}});
  CHECK(lineup.entrants.size() == 5);
  CHECK(meant(lineup, "phase") == "phase 0.000000");
  CHECK(meant(lineup, "phase+rails") == "phase 0.000000 rails");
  CHECK(meant(lineup, "hold+rails") == "nobody");
}

TEST_CASE("the safety rules use their own guard threshold, unless one is given") {
  const auto threshold = [](bool given) {
    const auto lineup =
        cgphase::line_up({.policies = {"phase"}, .threshold_given = given},
                         {.loop = {.guard_threshold = 0.7}, .rules = {.at_risk_ratio = 0.8}});
    REQUIRE(lineup);
    CHECK(lineup->entrants.at(0).settings.loop.growth_seconds == 0);
    CHECK(lineup->entrants.at(1).settings.loop.growth_seconds == 2);  // at_risk_growth
    return lineup->entrants.at(1).settings.loop.guard_threshold;
  };
  CHECK(threshold(false) == 0.8);
  CHECK(threshold(true) == 0.7);
}

TEST_CASE("a bare replay has no rails") {
  const Lineup lineup = line_up({.policies = {"phase"}, .bare = true});
  CHECK(lineup.entrants.size() == 1);
  CHECK(meant(lineup, "phase+rails") == "nobody");
}

TEST_CASE("a step with rails, and unknown policies, are refused with the option") {
  const auto refusal = [](const LineupOptions& options) {
    const auto lineup = cgphase::line_up(options, {.step_seconds = 15});
    return lineup ? "" : lineup.error().text;
  };
  CHECK(refusal({.policies = {"phase"}, .rails = true})
            .starts_with("--step: the safety rules decide at each"));
  CHECK(refusal({.policies = {"phase"}}) == "");
  CHECK(refusal({.policies = {"phase"}, .bare = true}) == "");
  CHECK(refusal({.policies = {"hold"}}) == "");
  CHECK(refusal({.policies = {"hodl"}}).starts_with("--policy: "));
}

TEST_CASE("pictures show ours first, then hold, then others, and fixed limits only alone") {
  const auto names = [](const LineupOptions& options) {
    const Lineup lineup = line_up(options);
    std::string out;
    for (const std::size_t i : pictured(lineup, 3))
      out += to_string(lineup.entrants[i].contender.policy) +
             (lineup.entrants[i].settings.safety ? "+rails " : " ");
    return out;
  };
  CHECK(names({.policies = {"static,sliding,hold,phase"}, .margins = {0, 0.1}}) ==
        "phase phase+rails hold ");
  CHECK(names({.policies = {"static,sliding,hold,phase"}, .bare = true}) == "phase hold sliding ");
  CHECK(names({.policies = {"static"}}) == "static ");
}
