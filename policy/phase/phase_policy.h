// `phase` and `proactive`: what a container will need, at an accepted risk, by its own demand, by
// earlier runs of its image and by what followed its phases. One knob, the risk.
//
// Room for a phase that usually comes now is made before it comes: what followed the same moment
// before is what will follow. The two differ in what they take for the same moment (phase_peaks.h):
// `phase` the phase and the time that it lasts already, `proactive` the phase before it as well.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "policy/phase/foreseen_limit.h"
#include "policy/phase/learned_phases.h"
#include "policy/policy.h"

namespace cgphase {

class PhasePolicy : public Policy {
 public:
  enum class Foresight { phase, proactive };

  // `prior`: what learned() of earlier runs gave, merged. Null or malformed: none.
  explicit PhasePolicy(const nlohmann::json& prior, const PolicySurroundings& surroundings = {},
                       Foresight foresight = Foresight::phase);

  void observe(const Observation& observation) override;
  void resume(double memory_peak_bytes) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;
  std::optional<Forecast> forecast(std::chrono::seconds horizon) const override;

 private:
  PhasePolicy(const LearnedPhases& earlier, const PolicySurroundings& surroundings,
              Foresight foresight);
  void enter(int slot, double time);
  void record(PhaseRecord& record, const Observation& observation, double time) const;
  struct Ahead {
    PeakAhead peak;  // of this run and earlier ones
    double own_moments = 0;
  };
  Ahead ahead_of(const PhaseMoment& moment) const;
  Ahead ahead_now() const;  // of moments like this one
  MomentPeak cpu_ahead() const;
  MomentPeak memory_ahead() const;
  double run_peak_bytes() const;
  double memory_kept() const;  // ready for whatever follows, in bytes
  const PhaseRecords& known() const { return with_earlier_.empty() ? own_ : with_earlier_; }
  bool room_made() const;  // for another phase than this one

  PolicySurroundings surroundings_;
  Foresight foresight_;
  PhaseRecords own_;     // of this run
  PhaseRecords with_earlier_;  // of earlier runs and this one; empty where there were none
  PhasePeaks earlier_peaks_;
  PhasePeakRecorder peaks_;
  Ahead ahead_;  // as of the last observation
  ForeseenLimit cpu_, memory_;
  double resumed_bytes_ = 0;  // of this run, before the first observation
  double visit_cores_ = 0, visit_bytes_ = 0;  // the highest of this visit
  std::map<int, int> earlier_runs_;  // by slot
  std::optional<int> slot_;          // absent before the first observation
  double entered_ = 0, now_ = 0;     // seconds
  bool whole_visit_ = false;         // its beginning was seen, so its length counts
};

}  // namespace cgphase
