// `theta-scan`: a seasonal forecast of the coming window in the manner of Theta-Scan (IEEE CLOUD
// 2021, github.com/BSC-IBM/ThetaScan): once a window, find the period of the observed past,
// forecast the window by the theta method (theta_forecast.h), allocate the largest forecast value,
// at most five times the largest of the last window.
//
// As published: steps of 15 s, windows of 20 of them, a past of 240, smoothing 0.2; before there
// are two windows (or two periods) the 95 % quantile of what was seen; before the first, nothing.
// Ours: a step is the largest sample in it, not the mean; a margin of 10 %; half the drift as theta
// has it, where the published program scales by the whole; the season is that of the found period,
// where the program takes the window for those below it; no Dickey-Fuller test.
// Samples rarer than a step are a step each. A gap begins the past anew.
#pragma once

#include <deque>
#include <optional>

#include "policy/baselines/theta_forecast.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr int kThetaMostSteps = 1000;  // of the past; the search costs its square
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
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  // Of one resource.
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
    std::optional<double> begin_;  // of the running step, seconds; absent before it
    double highest_ = 0;           // of the running step
    int since_forecast_ = 0;       // steps
    double count_ = 0;             // samples since the last gap
    std::optional<double> wanted_;
  };
  Forecast cpu_, memory_;
};

}  // namespace cgphase
