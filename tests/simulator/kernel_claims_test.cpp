#include "tests/simulator/kernel_claims.h"

#include <doctest/doctest.h>

#include "tests/simulator/simulated_hierarchy.h"

using namespace cgphase::simulator;

TEST_CASE("the simulator behaves as its claims say") {
  for (const Claim& claim : kernel_claims()) {
    CAPTURE(claim.name);
    SimulatedHierarchy tree;
    REQUIRE(tree.make("/a") == 0);
    CHECK(claim.outcome(tree) == claim.expected);
  }
}
