#include "model/two_means.h"

#include <algorithm>
#include <cmath>

namespace cgphase {
namespace {

// The growth of the sum of squares if two groups are merged.
double ward_cost(double weight, double mean, double other_weight, double other_mean) {
  const double apart = mean - other_mean;
  return weight * other_weight / (weight + other_weight) * apart * apart;
}

}  // namespace

void TwoMeans::Bin::merge(const Bin& other) {
  squares += other.squares + ward_cost(weight, mean, other.weight, other.mean);
  mean += (other.mean - mean) * (other.weight / (weight + other.weight));
  weight += other.weight;
}

void TwoMeans::forget() {
  for (Bin& bin : bins_) {
    bin.weight *= keep_;
    bin.squares *= keep_;
  }
  std::erase_if(bins_, [](const Bin& bin) { return bin.weight < kTwoMeansForgotten; });
}

void TwoMeans::merge_closest() {
  std::size_t closest = 0;
  double least = INFINITY;
  for (std::size_t i = 0; i + 1 < bins_.size(); ++i) {
    const Bin &left = bins_[i], &right = bins_[i + 1];
    const double cost = ward_cost(left.weight, left.mean, right.weight, right.mean);
    if (cost < least) {
      least = cost;
      closest = i;
    }
  }
  bins_[closest].merge(bins_[closest + 1]);
  bins_.erase(bins_.begin() + static_cast<std::ptrdiff_t>(closest) + 1);
}

void TwoMeans::add(double value) {
  forget();
  added_ += 1;
  const auto place = std::ranges::lower_bound(bins_, value, {}, &Bin::mean);
  if (place != bins_.end() && !(value < place->mean)) {
    place->weight += 1;
    return;
  }
  bins_.insert(place, {.weight = 1, .mean = value});
  if (bins_.size() > kTwoMeansBins) merge_closest();
}

std::optional<TwoMeans::Cut> TwoMeans::cut() const {
  if (added_ < kTwoMeansLeast || bins_.size() < 2) return std::nullopt;
  Bin all;
  for (const Bin& bin : bins_) {
    if (all.weight > 0) all.merge(bin);
    else all = bin;
  }
  double best = 0, weight = 0, sum = 0;
  std::size_t below = 0;
  // Sums use distances to the mean of all values, which keeps precision if values are large.
  for (std::size_t i = 0; i + 1 < bins_.size(); ++i) {
    weight += bins_[i].weight;
    sum += bins_[i].weight * (bins_[i].mean - all.mean);
    const double rest = all.weight - weight;
    if (!(rest > 0)) break;
    const double between = ward_cost(weight, sum / weight, rest, -sum / rest);
    if (between > best) {
      best = between;
      below = i + 1;
    }
  }
  if (below == 0) return std::nullopt;
  Bin low = bins_.front(), high = bins_.back();
  for (std::size_t i = 1; i < below; ++i) low.merge(bins_[i]);
  for (std::size_t i = below; i + 1 < bins_.size(); ++i) high.merge(bins_[i]);
  const Cut cut{low.mean, high.mean};
  const double within = std::sqrt((low.squares + high.squares) / all.weight);
  const double apart = kTwoMeansApart * (1 + kTwoMeansLeast / all.weight);
  if (cut.high - cut.low < apart * within) return std::nullopt;
  if (cut.low > kTwoMeansIdle * cut.high) return std::nullopt;
  return cut;
}

}  // namespace cgphase
