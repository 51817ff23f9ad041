#include "lab/replay/pareto.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace cgphase {

std::vector<std::size_t> pareto_front(std::span<const ParetoPoint> points) {
  std::vector<std::size_t> order(points.size()), front;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple(points[i].violation, points[i].cost, i);
  });
  for (const std::size_t i : order)
    if (front.empty() || points[i].cost < points[front.back()].cost) front.push_back(i);
  return front;
}

std::optional<std::size_t> cheapest_within(std::span<const ParetoPoint> points, double violation) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].violation > violation) continue;
    const auto rank = [&](std::size_t k) {
      return std::tuple(points[k].cost, points[k].violation);
    };
    if (!best || rank(i) < rank(*best)) best = i;
  }
  return best;
}

}  // namespace cgphase
