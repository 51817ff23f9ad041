#include "policy/budget/host_share.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace cgphase {
namespace {

constexpr ServiceClass kOrder[] = {ServiceClass::critical, ServiceClass::standard,
                                   ServiceClass::batch};

constexpr int kBisections = 64;

// Raises the lowest amounts together, each at most to its target, until nothing is left.
void fill(double& left, std::vector<double>& amounts, std::span<const double> targets) {
  const auto sum_at = [&](double level) {
    double sum = 0;
    for (std::size_t i = 0; i < amounts.size(); ++i)
      sum += std::max(0.0, std::min(level, targets[i]) - amounts[i]);
    return sum;
  };
  if (left <= 0 || amounts.empty()) return;
  const double all = sum_at(std::numeric_limits<double>::infinity());
  double low = 0, high = *std::ranges::max_element(amounts) + left;
  if (all <= left) low = std::numeric_limits<double>::infinity();
  else
    for (int i = 0; i < kBisections; ++i) {
      const double middle = low + (high - low) / 2;
      (sum_at(middle) <= left ? low : high) = middle;
    }
  left = std::max(0.0, left - sum_at(low));
  for (std::size_t i = 0; i < amounts.size(); ++i)
    amounts[i] = std::max(amounts[i], std::min(low, targets[i]));
}

}  // namespace

std::vector<double> share_budget(double budget, std::span<const ShareClaim> claims) {
  std::vector<double> amounts;
  double left = budget;
  for (const ShareClaim& claim : claims) {
    amounts.push_back(std::min(claim.least, claim.most));
    left -= amounts.back();
  }
  const auto in_order = [&](auto target_of) {
    for (const ServiceClass service_class : kOrder) {
      std::vector<double> targets = amounts;
      for (std::size_t i = 0; i < claims.size(); ++i)
        if (claims[i].service_class == service_class)
          targets[i] = target_of(claims[i], amounts[i]);
      fill(left, amounts, targets);
    }
  };
  in_order([](const ShareClaim& claim, double) { return std::min(claim.need, claim.most); });
  in_order([](const ShareClaim& claim, double now) { return claim.wants_more ? claim.most : now; });
  return amounts;
}

}  // namespace cgphase
