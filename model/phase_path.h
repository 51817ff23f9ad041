// Sticky decoding: finds the current phase if a change of phase has a cost. It keeps a phase if
// single samples are a little nearer to another one, and changes it if they stay there.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace cgphase {

// The Viterbi algorithm (Forney, "The Viterbi algorithm", Proc. IEEE 61, 1973) over the phases that
// are not part of another, step by step and without lookahead. With d_t(j) the squared distance to
// phase j at step t and s the switch cost,
//
//   c_t(j) = d_t(j) + min(c_{t-1}(j), min over i of c_{t-1}(i) + s)
//
// is the cost of the cheapest path that ends in j. The current phase is the one with the smallest
// c_t, the first of equal ones. If it was split, its nearest part at this step is used. With s = 0
// it is the nearest phase.
//
// Costs are integers in units of 2^-30, so that the same distances give the same phases on every
// machine. They are kept relative to the smallest, and a step inherits at most s from the one
// before. So nothing grows with time: distances and s are each at most 2^38, and every sum fits an
// int64 (tested at the largest values).
//
// Error. Let b_t be the largest error of a difference of two distances of step t. Then a difference
// of two path costs is wrong by at most E_t = b_t + M_{t-1}. M is the part of E that remains after
// the minimum with (least + s). Neither that minimum nor adding the same to all costs increases the
// largest difference of errors. M_t is
//   0           if every other phase is behind the best by at least s + E_t: then it is behind by
//               at least s in exact arithmetic, and in both the best costs 0 and all others s;
//   <= 2 s      always, because both costs are within [0, s];
//   <= E_t      always.
// So a phase whose path margin (second-best cost minus best) exceeds E_t is the one that exact
// arithmetic would find.
//
// One path per container; a value. No step allocates.
class PhasePath {
 public:
  // The number of centroids and the switch cost must have passed check_model().
  PhasePath(const Centroids& centroids, double switch_cost);

  struct Step {
    int index = 0;              // index of the phase or part
    std::int64_t distance = 0;  // squared distance to that phase or part
    // Of the distances of this step: second minus chosen, the smallest on the way down to a part; 0
    // if there never was a second. Negative if the path keeps a phase that is not the nearest.
    std::int64_t margin = 0;
    bool certain = false;  // exact arithmetic would choose the same phase and part
  };
  // `distances` has one squared distance per centroid, in units of 2^-30. `error_bound` is the
  // largest error of the difference of any two (CrbmFixed::error_bound).
  Step step(std::span<const std::int64_t> distances, double error_bound);

  // Forgets all earlier steps, after a gap.
  void reset();

  bool sticky() const { return switch_cost_ > 0; }

 private:
  std::int64_t switch_cost_;
  std::vector<int> parents_, top_;  // top_: the phases that are not part of another
  // Per top phase the cost with which the next step begins.
  std::array<std::int64_t, kMaxPhases> carried_{};
  std::int64_t carried_error_ = 0;                  // M
};

}  // namespace cgphase
