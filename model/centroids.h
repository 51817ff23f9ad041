// Finds the nearest centroid in the space of hidden activations, in double. The fixed-point version
// is in crbm_fixed.h.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "model/model.h"

namespace cgphase {

struct NearestCentroid {
  int index = 0;
  double distance = 0;  // squared Euclidean
  double margin = 0;    // squared distance to the second centroid minus `distance`; 0 if only one
};

template <class Distance>
struct CentroidChoice {
  int index = -1;
  Distance distance = 0, margin = 0;
};

// Descends from choice.index to its nearest part, and on to the nearest part of that one, until
// there are no parts. -1 starts above all phases. choice.margin is lowered to the smallest margin
// on the way, where there was a second candidate. If distances are equal, the first wins.
// `distances` and `parents` have one value per centroid. `parents` may be empty if the descent
// starts at -1.
template <class Distance>
void choose_part(std::span<const Distance> distances, std::span<const int> parents,
                 CentroidChoice<Distance>& choice) {
  constexpr Distance kFar = std::numeric_limits<Distance>::max();
  for (bool deeper = true; deeper;) {
    int best = -1;
    Distance second = kFar;
    for (std::size_t i = 0; i < distances.size(); ++i) {
      if (!parents.empty() && parents[i] != choice.index) continue;
      if (best < 0 || distances[i] < distances[static_cast<std::size_t>(best)]) {
        if (best >= 0) second = distances[static_cast<std::size_t>(best)];
        best = static_cast<int>(i);
      } else if (distances[i] < second) {
        second = distances[i];
      }
    }
    if (best < 0) break;  // no parts
    choice.index = best;
    choice.distance = distances[static_cast<std::size_t>(best)];
    if (second != kFar) choice.margin = std::min(choice.margin, second - choice.distance);
    deeper = !parents.empty();
  }
}

// The nearest centroid by `distances`, one per centroid. It descends from a split phase only to its
// own parts, so that decisions about other phases do not change. The margin is the smallest on the
// way down, 0 if there never was a second candidate.
template <class Distance>
CentroidChoice<Distance> choose_centroid(std::span<const Distance> distances,
                                         std::span<const int> parents) {
  constexpr Distance kFar = std::numeric_limits<Distance>::max();
  CentroidChoice<Distance> choice{-1, 0, kFar};
  choose_part(distances, parents, choice);
  if (choice.margin == kFar) choice.margin = 0;
  return choice;
}

// Sums run over the dimensions in ascending order. If centroids are equally near, the first wins.
// `point` has centroids.dimension values, and there is at least one centroid.
NearestCentroid nearest_centroid(const Centroids& centroids, std::span<const double> point);

double squared_distance(std::span<const double> a, std::span<const double> b);

}  // namespace cgphase
