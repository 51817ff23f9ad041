// `oracle-max` and `oracle-2sd`: the statistic of the window that is coming, (now, now + window],
// known beforehand. What no policy that decides once a window can be better than; the window is
// that of the surroundings. AI4DL (Buchaca et al., HotCloud'20) is compared with such.
//
// A window without a sample sees the next one; with nothing left it is the last sample. An oracle
// needs no warm-up.
#pragma once

#include "policy/baselines/window_statistic.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kOracleDeviations = {PolicyParameter{"deviations", 2, 0, 10}};

class OraclePolicy final : public Policy {
 public:
  // `deviations`: mean plus so many standard deviations; absent: the maximum.
  OraclePolicy(std::shared_ptr<const FutureDemand> future, double window_seconds,
               std::optional<double> deviations);

  void observe(const Observation& observation) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  std::optional<double> wanted(const WindowStatistic& coming, const FutureDemand::Values& known,
                               const std::optional<double>& last) const;

  std::shared_ptr<const FutureDemand> future_;
  FutureDemand::Values known_cpu_, known_memory_;  // at each sample its value or the next one
  double window_seconds_;
  std::optional<double> deviations_;
  std::size_t next_ = 0;  // of the future; what is before it was in the window once
  // The oldest is the nearest future: none may be pushed out.
  WindowStatistic cpu_{WindowStatistic::kAnySamples}, memory_{WindowStatistic::kAnySamples};
  std::optional<double> last_cpu_, last_memory_;
};

// Errors: invalid where the surroundings tell no future, or none that ascends.
Result<std::unique_ptr<Policy>> make_oracle_max(const PolicyMaking& making);
Result<std::unique_ptr<Policy>> make_oracle_2sd(const PolicyMaking& making);

}  // namespace cgphase
