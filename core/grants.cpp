#include "core/grants.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostGivers = 3;
// Use counts with room above it, or a raised limit would be at risk again at once.
constexpr double kHeadroomRatio = 1.15;

struct Amounts {
  double own = kNoLimit;      // its original limit
  double agreed = kNoLimit;   // what its owner agrees to, at least `own`
  double in_force = kNoLimit;
  double around = kNoLimit;   // what the ancestor cgroups allow
  double need = 0;
  std::optional<double> least;
};

struct Taker {
  ContainerView* view = nullptr;
  std::size_t claim = 0;
  double least = 0;     // the grant is never less
  double in_force = 0;  // its limit now
};

double hard_limit(const Limits& limits) {
  return limits.memory_max && limits.memory_max->bytes
             ? static_cast<double>(limits.memory_max->bytes->value) : kNoLimit;
}

Amounts amounts_of(Resource resource, const ContainerView& view) {
  const Terms& terms = view.terms;
  Amounts found;
  std::optional<double> most, use, recommended;
  if (resource == Resource::cpu) {
    if (const auto cores = view.original.cpu_cores()) found.own = cores->value;
    if (terms.cpu_max) most = terms.cpu_max->value;
    if (terms.cpu_min) found.least = terms.cpu_min->value;
    if (view.recommendation.cpu) recommended = view.recommendation.cpu->value;
    use = view.cpu_cores;
    if (const auto now = view.in_force.cpu_cores()) found.in_force = now->value;
    found.around = view.ancestor_limits.cpu_cores;
  } else {
    found.own = hard_limit(view.original);
    if (terms.memory_max) most = static_cast<double>(terms.memory_max->value);
    if (terms.memory_min) found.least = static_cast<double>(terms.memory_min->value);
    if (view.recommendation.memory)
      recommended = static_cast<double>(view.recommendation.memory->value);
    found.in_force = hard_limit(view.in_force);
    found.around = view.ancestor_limits.memory_bytes;
    if (view.memory_need) use = static_cast<double>(view.memory_need->value);
  }
  found.agreed = found.own == kNoLimit ? most.value_or(kNoLimit)
                                       : std::max(found.own, most.value_or(found.own));
  const double used = use.value_or(0) * kHeadroomRatio;
  found.need = std::max(used, recommended.value_or(found.own == kNoLimit ? used : found.own));
  return found;
}

bool may_take(Resource resource, const ContainerView& view) {
  if (view.mode == Mode::observe || !view.info.hands_off.empty()) return false;
  return resource == Resource::cpu ? !view.pin.cpu : !view.pin.memory;
}

// A grant that is no longer needed but still in force belongs to nobody else. Its own limit does,
// as that of any container that does not need it.
double unused(const Taker& taker, double share) {
  if (taker.in_force == kNoLimit) return 0;
  return std::max(0.0, taker.in_force - std::max(share, taker.least));
}

void grant(Resource resource, const BudgetConfig& config, double budget,
           std::span<const Claimant> claimants) {
  std::vector<ShareClaim> claims;
  std::vector<Taker> takers;
  for (const Claimant& one : claimants) {
    const Amounts amounts = amounts_of(resource, *one.view);
    if (one.view->inside) continue;
    const bool memory = resource == Resource::memory;
    const bool open = memory && amounts.own == kNoLimit;
    if (open && config.unlimited == UnlimitedRule::ignore) continue;
    const bool may = may_take(resource, *one.view);
    const bool guard = may && open && config.unlimited == UnlimitedRule::guard;
    // After a reload systemd writes a unit's own memory.max again, and the kernel kills what is
    // above it.
    const bool raised = may && amounts.own < amounts.agreed && amounts.own != kNoLimit &&
                        !(memory && one.view->info.systemd_unit);
    if (guard || raised)
      takers.push_back({one.view, claims.size(), guard ? 0 : amounts.own, amounts.in_force});
    const double most = guard || amounts.own < kNoLimit ? amounts.agreed : kNoLimit;
    claims.push_back({one.view->terms.service_class, amounts.least.value_or(0), amounts.need,
                      std::min({most, budget, amounts.around}),
                      guard || (raised && (memory ? one.wants_memory : one.wants_cpu))});
  }
  if (takers.empty()) return;
  std::vector<double> shares = share_budget(budget, claims);
  double kept = 0;
  for (const Taker& taker : takers) kept += unused(taker, shares[taker.claim]);
  if (kept > 0) shares = share_budget(std::max(budget - kept, 0.0), claims);
  for (const Taker& taker : takers) {
    Grant& granted = taker.view->grant;
    (resource == Resource::cpu ? granted.cpu_cores : granted.memory_bytes) =
        std::max(taker.least, shares[taker.claim]);
  }
}

}  // namespace

void grant_shares(const BudgetConfig& config, const HostCapacity& host, const OutsideShare& outside,
                  std::span<const Claimant> claimants) {
  for (const Claimant& one : claimants) one.view->grant = {};
  const double cores = host.cpu_cores * config.cpu_ratio - outside.cpu_cores;
  const double bytes =
      static_cast<double>(host.memory.value) * config.memory_ratio - outside.memory_bytes;
  if (host.cpu_cores > 0) grant(Resource::cpu, config, std::max(cores, 0.0), claimants);
  if (host.memory.value > 0) grant(Resource::memory, config, std::max(bytes, 0.0), claimants);
}

std::string givers_of(Resource resource, std::span<const Claimant> claimants, CgroupId taker) {
  struct Giver {
    double left = 0, own = 0;
    const ContainerView* view = nullptr;
  };
  std::vector<Giver> givers;
  for (const Claimant& one : claimants) {
    const Amounts amounts = amounts_of(resource, *one.view);
    const double left = amounts.own - amounts.need;
    if (one.view->info.id != taker && !one.view->inside && amounts.own != kNoLimit && left > 0)
      givers.push_back({left, amounts.own, one.view});
  }
  std::ranges::stable_sort(givers, std::greater{}, &Giver::left);
  if (givers.size() > kMostGivers) givers.resize(kMostGivers);
  std::string text;
  for (const Giver& one : givers) {
    if (!text.empty()) text += ", ";
    text += escape_name(one.view->info.name);
    text += resource == Resource::cpu
                ? fmt::format(" ({:.1f} of {:.1f} cores)", one.left, one.own)
                : " (" + human_bytes(one.left) + " of " + human_bytes(one.own) + ")";
  }
  return text;
}

}  // namespace cgphase
