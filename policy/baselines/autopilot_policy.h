// `autopilot` and `autopilot-tuned`: the moving-window recommender of Google's Autopilot (K. Rzadca
// et al., EuroSys 2020, section 3.2.2).
//
// CPU: 95th percentile of the load-adjusted histogram. Each sample weighs as much as it used, and
// its weight halves every 12 h. Memory: 98th percentile (1 is the maximum) of the same histogram of
// five-minute peaks, including the current one, with a half-life of 48 h. Both are multiplied by
// 1.15 (the paper's margin is 10 to 15 %, less for large limits). The result is the maximum of the
// recommendations of the last hour. Later runs of the image continue the histograms, as Autopilot
// does for a job.
//
// Not implemented: the recommenders that choose among machine-learned arms; aggregation over the
// tasks of a job; for CPU the five-minute aggregates (each sample counts at once).
//
// `autopilot-tuned` uses half-lives tuned to the job. The half-life of CPU is `jobs` times the
// length of the job (an eighth, as `vpa-tuned`); if the length is unknown, it is the window of the
// surroundings. The other times keep Autopilot's proportions to it: memory x 4, peak window / 144,
// last hour / 12.
#pragma once

#include <optional>

#include "policy/phase/learned_usage.h"
#include "policy/phase/sliding_maximum.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kAutopilotParameters = {
    PolicyParameter{"cpu-quantile", 0.95, 0, 1},
    PolicyParameter{"memory-quantile", 0.98, 0, 1},
    PolicyParameter{"margin", 1.15, 1, 10},
    PolicyParameter{"half-life", 43200, 1, 1e8},  // of CPU, in seconds; the other times are in
                                                  // proportion
};
inline constexpr std::array kAutopilotTunedParameters = {
    PolicyParameter{"cpu-quantile", 0.95, 0, 1},
    PolicyParameter{"memory-quantile", 0.98, 0, 1},
    PolicyParameter{"margin", 1.15, 1, 10},
    PolicyParameter{"jobs", 0.125, 0.001, 1000},  // half-life of CPU, in lengths of the job
};

class AutopilotPolicy final : public Policy {
 public:
  AutopilotPolicy(const PolicyArgs& making, double cpu_half_life_seconds);

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;
  LearnedState learned() const override;

 private:
  struct Peak {
    double bytes = 0, end_seconds = 0;
  };
  void observe_memory(double bytes, double time_seconds);
  void recommend(double time_seconds);
  std::optional<double> memory_quantile() const;

  std::string_view name_;
  UsageShapes shapes_;
  double cpu_quantile_, memory_quantile_, margin_;
  double peak_seconds_, hold_seconds_;
  DecayingHistogram own_cpu_, own_memory_;  // of this run; memory without the current peak
  DecayingHistogram cpu_, memory_;          // including earlier runs
  std::optional<Peak> peak_;                // of the current window
  SlidingMaximum recommended_cpu_, recommended_memory_;
  bool taught_cpu_ = false, taught_memory_ = false;  // whether earlier runs taught anything
  int earlier_runs_ = 0;
  double cpu_count_ = 0, memory_count_ = 0;  // samples of this run
};

Result<std::unique_ptr<Policy>> make_autopilot(const PolicyArgs& making);
Result<std::unique_ptr<Policy>> make_autopilot_tuned(const PolicyArgs& making);

}  // namespace cgphase
