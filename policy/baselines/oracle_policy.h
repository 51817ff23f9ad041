// `oracle-max` and `oracle-2sd` use the statistic of the coming window, (now, now + window], which
// they know in advance. No policy that decides once per window can do better. The window comes from
// the surroundings. AI4DL (Buchaca et al., HotCloud'20) compares with such oracles.
//
// A window without a sample uses the next sample. After the end of the data it uses the last
// sample. An oracle needs no warm-up.
#pragma once

#include "policy/baselines/window_statistic.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kOracleDeviations = {PolicyParameter{"deviations", 2, 0, 10}};

class OraclePolicy final : public Policy {
 public:
  // `deviations`: standard deviations above the mean. Absent: the maximum.
  OraclePolicy(std::shared_ptr<const FutureDemand> future, double window_seconds,
               std::optional<double> deviations);

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  std::optional<double> wanted(const WindowStatistic& coming, const FutureDemand::Values& known,
                               const std::optional<double>& last) const;

  std::shared_ptr<const FutureDemand> future_;
  FutureDemand::Values known_cpu_, known_memory_;  // the value at each sample, or the next known
                                                   // one
  double window_seconds_;
  std::optional<double> deviations_;
  std::size_t next_ = 0;  // index into the future; earlier samples have already entered the window
  // The oldest sample is the nearest future, so none may be dropped.
  WindowStatistic cpu_{WindowStatistic::kAnySamples}, memory_{WindowStatistic::kAnySamples};
  std::optional<double> last_cpu_, last_memory_;
};

// Errors: invalid, if the surroundings have no future, or its times do not ascend.
Result<std::unique_ptr<Policy>> make_oracle_max(const PolicyArgs& making);
Result<std::unique_ptr<Policy>> make_oracle_2sd(const PolicyArgs& making);

}  // namespace cgphase
