// `phase` and `proactive` recommend what a container will need at an accepted risk. They use its
// own demand, earlier runs of its image, and what followed its phases before. The risk is the only
// parameter.
//
// The limit rises before a phase that usually comes now. The prediction is what followed the same
// moment before. The two policies define a moment differently (phase_peaks.h). For `phase` it is
// the phase and the age of the visit. For `proactive` it is the previous phase as well.
#pragma once

#include <map>
#include <optional>

#include "policy/phase/foreseen_limit.h"
#include "policy/phase/learned_phases.h"
#include "policy/policy.h"

namespace cgphase {

class PhasePolicy : public Policy {
 public:
  enum class Foresight { phase, proactive };

  // `prior`: the merged learned() of earlier runs. It is ignored if it has no phases or is out of
  // bounds.
  explicit PhasePolicy(const LearnedState& prior, const PolicyEnvironment& environment = {},
                       Foresight foresight = Foresight::phase);

  void observe(const Observation& observation) override;
  void resume(double memory_peak_bytes) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;
  LearnedState learned() const override;
  std::optional<Forecast> forecast(std::chrono::seconds horizon) const override;

 private:
  PhasePolicy(const LearnedPhases& earlier, const PolicyEnvironment& environment,
              Foresight foresight);
  void enter(int slot, double time);
  void record(PhaseRecord& record, const Observation& observation, double time) const;
  struct Ahead {
    PeakAhead peak;  // of this run and earlier ones
    double own_moments = 0;
  };
  Ahead ahead_of(const PhaseMoment& moment) const;
  Ahead ahead_now() const;  // of moments like the current one
  MomentPeak cpu_ahead() const;
  MomentPeak memory_ahead() const;
  double run_peak_bytes() const;
  double memory_kept() const;  // reserved for any later phase, in bytes
  const PhaseRecords& known() const { return with_earlier_.empty() ? own_ : with_earlier_; }
  bool room_made() const;  // whether the limit has room for another phase

  PolicyEnvironment surroundings_;
  Foresight foresight_;
  PhaseRecords own_;     // of this run
  PhaseRecords with_earlier_;  // earlier runs and this one; empty without earlier runs
  PhasePeaks earlier_peaks_;
  PhasePeakRecorder peaks_;
  Ahead ahead_;  // at the last observation
  ForeseenLimit cpu_, memory_;
  double resumed_bytes_ = 0;  // of this run, before the first observation
  double visit_cores_ = 0, visit_bytes_ = 0;  // the highest of this visit
  std::map<int, int> earlier_runs_;  // by slot
  std::optional<int> slot_;          // absent before the first observation
  double entered_ = 0, now_ = 0;     // seconds
  bool whole_visit_ = false;         // its start was seen, so its length counts
};

}  // namespace cgphase
