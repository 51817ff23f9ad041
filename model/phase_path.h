// Sticky decoding: which phase is in force, when changing the phase has a price. Keeps a phase
// through samples that lie a little nearer to another one, and leaves it when they go on doing so.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace cgphase {

// The Viterbi algorithm (Forney, "The Viterbi algorithm", Proc. IEEE 61, 1973) over the phases that
// are no part of another, step by step and without looking ahead: with d_t(j) the squared distance
// to phase j at step t and s the switch cost,
//
//   c_t(j) = d_t(j) + min(c_{t-1}(j), min over i of c_{t-1}(i) + s)
//
// is the cost of the cheapest path that ends in j, and the phase in force is the one with the least
// c_t, the first of equal ones. Where that one was split, its nearest part at this step is taken.
// With s = 0 it is the nearest phase.
//
// Integers in units of 2^-30, so the same distances give the same phases on every machine. Costs
// are kept relative to the least, and what a step takes over from the one before is at most s;
// nothing grows with time: distances and s are each at most 2^38, so every sum fits an int64
// (tested at the largest values).
//
// Error. Let no difference of two distances of step t be wrong by more than b_t. Then no
// difference of two path costs is wrong by more than E_t = b_t + M_{t-1}, with M what is left of E
// after taking the minimum with (least + s): both that minimum and adding the same to all costs
// leave the greatest difference of errors no greater. M_t is
//   0           if every other phase lags behind the best by at least s + E_t: then it does so by
//               at least s in truth, and the phase in force costs 0 and all others s in both;
//   <= 2 s      always, because both costs lie within [0, s];
//   <= E_t      always.
// A phase whose path margin (second-best cost minus best) exceeds E_t is thus the one that exact
// arithmetic would find.
//
// Of one container; a value. No step allocates.
class PhasePath {
 public:
  // As many centroids and of such a switch cost as check_model() lets pass.
  PhasePath(const Centroids& centroids, double switch_cost);

  struct Step {
    int index = 0;              // of the phase or part
    std::int64_t distance = 0;  // squared, to that one
    // Of the distances of this step: second minus chosen, the least of the way down to a part; 0
    // where there never was a second. Below 0 where the path keeps a phase that is not the nearest.
    std::int64_t margin = 0;
    bool certain = false;  // exact arithmetic would choose the same phase and part
  };
  // `distances` has one per centroid, squared, in units of 2^-30; `error_bound` is what the
  // difference of any two may be wrong by (CrbmFixed::error_bound).
  Step step(std::span<const std::int64_t> distances, double error_bound);

  // After a gap: what was before has no say.
  void reset();

  bool sticky() const { return switch_cost_ > 0; }

 private:
  std::int64_t switch_cost_;
  std::vector<int> parents_, top_;  // top_: the phases that are no part of another
  std::array<std::int64_t, kMaxPhases> carried_{};  // per top phase what the next step begins with
  std::int64_t carried_error_ = 0;                  // M
};

}  // namespace cgphase
