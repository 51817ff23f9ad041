// The limit of one resource: the smallest of the bounds that hold at the accepted risk (this run's
// own demand, what earlier runs reached, what followed moments like this one), with room for the
// guard, held so that writes are few. A value type; one thread.
#pragma once

#include <cstddef>
#include <optional>

#include "policy/phase/demand_bound.h"
#include "policy/phase/held_limit.h"
#include "policy/phase/steered_risk.h"

namespace cgphase {

// What earlier runs of the image reached.
struct EarlierPeak {
  double runs = 0, samples = 0;
  double peak = 0;             // 0: not measured
  double rise_per_second = 0;  // the steepest
};

// What followed moments like this one, within DemandBound::kAheadSamples.
struct MomentPeak {
  double own_moments = 0, earlier_moments = 0;  // counted in this run and in earlier ones
  double visits = 0;    // in which these were
  double peak = 0;
  double expected = 0;  // what usually comes and is to be provided for; 0: nothing
  double kept = 0;      // what is kept ready whatever the bounds say
};

class ForeseenLimit {
 public:
  // `drifts`: as of DemandBound. Expected demand stays below `guard_threshold` times the limit.
  // `write_risk`: that of HeldLimit.
  ForeseenLimit(double risk, double guard_threshold, bool drifts, const EarlierPeak& earlier,
                double write_risk = kShippedRisk);

  // One sample, and what is known of moments like its own.
  void add(double demand, double interval_seconds, const MomentPeak& moment);

  // What to allocate; absent while nothing is known.
  std::optional<double> level() const { return held_.level(); }
  // What demand will not pass in the coming samples, without the guard's room.
  std::optional<double> coming() const { return coming_; }
  const DemandBound& own() const { return own_; }

 private:
  std::optional<DemandBound::Ahead> bound(const MomentPeak& moment);
  bool own_speaks() const;
  double promise() const;

  SteeredRisk risk_;
  double room_;  // a limit's share of the demand expected under it
  bool drifts_;
  EarlierPeak earlier_;
  double earlier_weight_;            // of one sample of an earlier run
  bool disproved_ = false;           // this run needed more than earlier ones promised
  std::optional<double> promised_;   // by earlier runs; absent where there were none
  std::optional<double> coming_;
  DemandBound own_;
  HeldLimit held_;
};

}  // namespace cgphase
