// The limit of one resource: the smallest of the bounds at the accepted risk, plus room for the
// fast path. The bounds come from this run's own demand, the peaks of earlier runs, and what
// followed moments like the current one. Hysteresis keeps the number of writes low. A value type;
// one thread.
#pragma once

#include <cstddef>
#include <optional>

#include "policy/phase/demand_bound.h"
#include "policy/phase/hysteresis.h"
#include "policy/phase/steered_risk.h"

namespace cgphase {

// Peaks of earlier runs of the image.
struct EarlierPeak {
  double runs = 0, samples = 0;
  double peak = 0;             // 0: not measured
  double rise_per_second = 0;  // the steepest
};

// The demand that followed moments like the current one, within DemandBound::kAheadSamples.
struct MomentPeak {
  double own_moments = 0, earlier_moments = 0;  // number of moments in this run and in earlier ones
  double visits = 0;    // number of visits with these moments
  double peak = 0;
  double expected = 0;  // usual demand to provide room for; 0: none
  double kept = 0;      // provided regardless of the bounds
};

class ForeseenLimit {
 public:
  // `drifts`: as in DemandBound. Expected demand stays below `guard_threshold` times the limit.
  // `write_risk`: the risk for Hysteresis.
  ForeseenLimit(double risk, double guard_threshold, bool drifts, const EarlierPeak& earlier,
                double write_risk = kShippedRisk);

  // Adds a sample and the known peaks of moments like it.
  void add(double demand, double interval_seconds, const MomentPeak& moment);

  // The recommended limit. Absent while there are no data.
  std::optional<double> level() const { return held_.level(); }
  // The bound for the coming samples, without room for the fast path.
  std::optional<double> coming() const { return coming_; }
  const DemandBound& own() const { return own_; }

 private:
  std::optional<DemandBound::Ahead> bound(const MomentPeak& moment);
  bool own_speaks() const;
  double promise() const;

  SteeredRisk risk_;
  double room_;  // limit per demand that is expected under it
  bool drifts_;
  EarlierPeak earlier_;
  double earlier_weight_;            // weight of a sample of an earlier run
  bool disproved_ = false;           // this run exceeded the bound of the earlier runs
  std::optional<double> promised_;   // bound from earlier runs; absent without any
  std::optional<double> coming_;
  DemandBound own_;
  Hysteresis held_;
};

}  // namespace cgphase
