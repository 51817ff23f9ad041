// An upper bound for the coming samples of one resource at an accepted risk, from the demand of
// this run alone. It is a heuristic after Chebyshev and Cantelli, not a proof: steps may be larger
// than their mean.
//
// - Level. In n samples demand went up to M, so by M / n per sample on average. A step within [0, M
//   / n] has at most half of that as its deviation (Popoviciu). It exceeds 1 / sqrt(risk)
//   deviations with at most `risk` (Chebyshev). The bound is M x (1 + 1 / (2 n sqrt(risk))),
//   computed by `widened()`. It is wide for a new container and tight for one with many samples.
// - Rise, for a demand that drifts as memory does: last + mean step + deviation x sqrt(1 / risk -
//   1) (Cantelli), and last + largest step, widened as above.
//
// Both are computed for each of the nested windows: recent ones follow changes, long ones contain
// rare events. The smallest bound is used. Steps count only from a full window on, because fewer
// rarely include one that begins a phase.
#pragma once

#include <optional>

#include "policy/phase/nested_windows.h"

namespace cgphase {

double widened(double peak, double samples, double risk);

class DemandBound {
 public:
  // `drifts`: the next demand is the last one plus a step, as with memory.
  explicit DemandBound(bool drifts) : drifts_(drifts) {}

  // `interval_seconds`: time since the previous sample; 0 for the first and after a gap.
  void add(double demand, double interval_seconds);

  // Bounds for the next sample, and for all of the next kAheadSamples.
  struct Ahead {
    double next = 0, coming = 0;
  };
  static constexpr int kAheadSamples = 10;
  // Bounds at this risk, which is from kLeastRisk to kMostRisk. Absent before kWarmUpSamples.
  std::optional<Ahead> ahead(double risk);

  std::size_t count() const { return levels_.count(); }
  double last() const { return last_; }
  double peak() const { return peak_; }
  // The steepest rise so far. Demand between two samples is unknown. A rise between samples up to
  // kAtOnceSeconds apart is therefore assumed to have happened within one second.
  double rise_per_second() const { return rise_per_second_; }
  static constexpr double kAtOnceSeconds = 5;

 private:
  void add_rises(double risk, Ahead& ahead);

  bool drifts_;
  NestedWindows levels_{false}, steps_;
  double last_ = 0, peak_ = 0, rise_per_second_ = 0;
};

}  // namespace cgphase
