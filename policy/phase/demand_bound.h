// What the coming samples of one resource will not pass, at an accepted risk, by the demand of this
// run alone. A rule after Chebyshev and Cantelli, not a proof: steps may be larger than their mean.
//
// - Level. In n samples demand went up to M, so by M / n per sample on average. A step within
//   [0, M / n] has at most half of that as its deviation (Popoviciu), and passes 1 / sqrt(risk)
//   deviations with at most `risk` (Chebyshev): M x (1 + 1 / (2 n sqrt(risk))). Wide for a
//   container that was hardly seen, tight for one that is known. `widened()`.
// - Rise, for a demand that drifts as memory does: last + mean step + deviation x
//   sqrt(1 / risk - 1) (Cantelli), and last + largest step, widened as above.
//
// Each holds for each of the nested windows, recent ones for what changed, long ones for what is
// rare; the smallest of them is taken. Steps count only when there is a whole window of them:
// fewer have hardly met one of those that begin a phase.
#pragma once

#include <optional>

#include "policy/phase/nested_windows.h"

namespace cgphase {

double widened(double peak, double samples, double risk);

class DemandBound {
 public:
  // `drifts`: the next demand is the last one and a step, as with memory.
  explicit DemandBound(bool drifts) : drifts_(drifts) {}

  // `interval_seconds` since the previous sample; 0 for the first and after a gap.
  void add(double demand, double interval_seconds);

  // Of the next sample, and of all the next kAheadSamples.
  struct Ahead {
    double next = 0, coming = 0;
  };
  static constexpr int kAheadSamples = 10;
  // At this risk, from kLeastRisk to kMostRisk. Absent before kWarmUpSamples.
  std::optional<Ahead> ahead(double risk);

  std::size_t count() const { return levels_.count(); }
  double last() const { return last_; }
  double peak() const { return peak_; }
  // The steepest rise so far. Nobody saw what was between two samples: what rose between those of
  // up to kAtOnceSeconds is taken to have done so within one second.
  double rise_per_second() const { return rise_per_second_; }
  static constexpr double kAtOnceSeconds = 5;

 private:
  void add_rises(double risk, Ahead& ahead);

  bool drifts_;
  NestedWindows levels_{false}, steps_;
  double last_ = 0, peak_ = 0, rise_per_second_ = 0;
};

}  // namespace cgphase
