// `phase`: what each phase of this container needs, by its own statistics and those of earlier runs
// of its image, kept ready for every phase that may follow before cgphase could react.
//
// CPU: 99 % quantile of the samples x 1.15. Memory: peak of the need x 1.15. Both are the largest
// over the phase of now and each that is visited within the horizon with more than the accepted
// risk (phase_record.h). A phase that is not known, or hardly seen, gives no opinion.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "policy/phase_record.h"
#include "policy/policy.h"

namespace cgphase {

class PhasePolicy final : public Policy {
 public:
  // `prior`: what learned() of earlier runs gave, merged. Null or malformed: none.
  explicit PhasePolicy(const nlohmann::json& prior, const PolicySurroundings& surroundings = {});

  void observe(const Observation& observation) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  void enter(int slot, double time);
  void record(PhaseRecord& record, const Observation& observation, double time) const;

  PhaseRecords own_;     // of this run
  PhaseRecords known_;   // of earlier runs and this one
  std::map<int, int> earlier_runs_;  // by slot
  std::optional<int> slot_;          // absent before the first observation
  double entered_ = 0, now_ = 0;     // seconds
  bool whole_visit_ = false;         // its beginning was seen, so its length counts
  PolicySurroundings surroundings_;
};

// The merge_learned of this policy.
nlohmann::json merge_phase_records(const nlohmann::json& earlier, const nlohmann::json& run);

}  // namespace cgphase
