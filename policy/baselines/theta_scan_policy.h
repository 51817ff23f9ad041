// `theta-scan`: a seasonal forecast in the manner of Theta-Scan (IEEE CLOUD 2021,
// github.com/BSC-IBM/ThetaScan). Once per window it finds the period of the past and forecasts the
// window with the theta method (theta_forecast.h). It allocates the largest forecast value, at most
// five times the largest value of the last window.
//
// As published: steps of 15 s, windows of 20 steps, a past of 240 steps, smoothing 0.2. Before two
// windows (or two periods) it uses the 95 % quantile of the past. Before the first window it has no
// opinion.
// Different from the published program: a step is its largest sample, not the mean; the margin is
// 10 %; the drift is halved, as in the theta method; the season is that of the found period even if
// it is shorter than the window; there is no Dickey-Fuller test.
// If samples are rarer than steps, each sample is a step. A gap clears the past.
#pragma once

#include <deque>
#include <optional>

#include "policy/baselines/theta_forecast.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr int kThetaMostSteps = 1000;  // in the past; the search costs its square
inline constexpr std::array kThetaScanParameters = {
    PolicyParameter{"step", 15, 0.1, 3600},  // seconds
    PolicyParameter{"window", 20, 1, 1000, true},   // steps
    PolicyParameter{"past", 240, 24, kThetaMostSteps, true},
    PolicyParameter{"smoothing", 0.2, 0.01, 1},
    PolicyParameter{"margin", 1.1, 1, 10},
};

class ThetaScanPolicy final : public Policy {
 public:
  explicit ThetaScanPolicy(const PolicyValues& values);

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  // For one resource.
  class Forecast {
   public:
    explicit Forecast(const PolicyValues& values);
    void add(double value, double time_seconds);
    void gap();
    std::optional<double> wanted() const { return wanted_; }
    double count() const { return count_; }

   private:
    void end_step();
    double next_window() const;

    double step_seconds_, margin_;
    int window_, past_;
    ThetaSettings settings_;
    std::deque<double> steps_;  // at most past_
    std::optional<double> begin_;  // of the current step, in seconds; absent before the first
    double highest_ = 0;           // of the current step
    int since_forecast_ = 0;       // steps
    double count_ = 0;             // samples since the last gap
    std::optional<double> wanted_;
  };
  Forecast cpu_, memory_;
};

}  // namespace cgphase
