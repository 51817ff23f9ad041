// What the budget of the host grants each container (policy/budget/host_share.h). Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectors/sample.h"
#include "core/core.h"
#include "policy/budget/host_share.h"
#include "policy/budget_config.h"
#include "policy/decision.h"

namespace cgphase {

// A container and whether it is at its limit now, so that it wants more.
struct Claimant {
  ContainerView* view = nullptr;
  bool wants_cpu = false, wants_memory = false;
};

// Sets `grant` of each view from its recommendation, use and terms. Nested containers claim
// nothing: they live within the outer one. On a host of unknown size nothing is granted.
void grant_shares(const BudgetConfig& config, const HostCapacity& host, const OutsideShare& outside,
                  std::span<const Claimant> claimants);

// Up to three containers that leave the most of their own limit to the others: "train (3 of 4
// cores), web (0.5 of 1 cores)". Empty if nobody leaves anything.
std::string givers_of(Resource resource, std::span<const Claimant> claimants, CgroupId taker);

}  // namespace cgphase
