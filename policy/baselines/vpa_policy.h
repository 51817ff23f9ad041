// `vpa` and `vpa-tuned`: the recommender of Kubernetes' vertical pod autoscaler
// (github.com/kubernetes/autoscaler, vertical-pod-autoscaler/pkg/recommender, release 1.x).
//
// As in VPA:
// - Histograms with buckets that widen by 5 %, the first 0.01 core or 10 MB wide, and a half-life
//   of 24 h.
// - A CPU sample weighs as much as the request, at least 0.1 core. Here the limit replaces the
//   request, and the length of the interval is a weight, too.
// - Memory has one peak per 24 h, stored at the end of that interval; the current one counts.
// - After a lack of memory, a peak of max(x 1.2, + 100 MiB) of the available memory.
// - The recommendation is the upper edge of the bucket of the 90th percentile x 1.15.
// - Later runs start from the checkpoints.
//
// Not implemented: the minimum of 25 millicores and 250 MiB per pod; the bounds outside of which
// the updater changes a running pod (here each recommendation takes effect at once, in VPA's
// favour); fresh limits of a restarted pod; one sample per minute (here every sample); forgetting
// of peaks after eight days.
//
// A lack of memory means that need exceeded the policy's last recommendation. `vpa-tuned` tunes the
// half-life and the peak interval to the job: `jobs` times its length, so that VPA's eight
// intervals are one job. If the length is unknown, it is the window of the surroundings.
#pragma once

#include <optional>

#include "policy/phase/learned_usage.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kVpaParameters = {
    PolicyParameter{"quantile", 0.9, 0, 1},
    PolicyParameter{"margin", 1.15, 1, 10},
    PolicyParameter{"half-life", 86400, 1, 1e8},  // seconds; also the interval of the peaks
    PolicyParameter{"bump", 1.2, 1, 10},
    PolicyParameter{"bump-bytes", 104857600, 0, 1e12},
};
inline constexpr std::array kVpaTunedParameters = {
    PolicyParameter{"quantile", 0.9, 0, 1},
    PolicyParameter{"margin", 1.15, 1, 10},
    PolicyParameter{"jobs", 0.125, 0.001, 1000},  // half-life, in job lengths
    PolicyParameter{"bump", 1.2, 1, 10},
    PolicyParameter{"bump-bytes", 104857600, 0, 1e12},
};

// Buckets that widen by 5 %: bucket i begins at first * (1.05^i - 1) / 0.05. These equal buckets
// with edges that grow by 5 % from 20 x first on, if all values are shifted by 20 x first.
class VpaHistogram {
 public:
  explicit VpaHistogram(DecayingHistogram shifted) : shifted_(std::move(shifted)) {}
  static DecayingHistogram::Shape shape(double first, double half_life_seconds);

  void add(double value, double weight, double time_seconds);
  // Upper edge of the bucket.
  std::optional<double> quantile(double share) const;
  const DecayingHistogram& shifted() const { return shifted_; }

 private:
  DecayingHistogram shifted_;
};

// One peak per interval. The current peak is separate, because it still grows.
class VpaMemoryPeaks {
 public:
  struct Peak {
    double bytes = 0, time_seconds = 0;
  };
  explicit VpaMemoryPeaks(double interval_seconds) : interval_(interval_seconds) {}

  // Adds a sample of use. Returns the peak of the interval that this sample ends, if any.
  std::optional<Peak> add(double bytes, double time_seconds);
  // Raises the peak after a lack of memory, from the larger of `in_force` and this interval's use.
  void bump(double in_force_bytes, double ratio, double least_bytes);
  std::optional<Peak> running() const;

 private:
  double interval_;
  std::optional<double> end_;  // absent before the first sample
  double usage_peak_ = 0, bumped_peak_ = 0;
};

class VpaPolicy final : public Policy {
 public:
  VpaPolicy(const PolicyArgs& making, double half_life_seconds);

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;
  LearnedState learned() const override;

 private:
  void observe_cpu(double cores, const Observation& observation);
  void observe_memory(double bytes, double time_seconds);
  void recommend_memory();

  std::string_view name_;
  UsageShapes shapes_;
  double quantile_, margin_, bump_, bump_bytes_;
  VpaMemoryPeaks peaks_;
  VpaHistogram own_cpu_, own_memory_;  // of this run; memory without the current peak
  VpaHistogram cpu_, memory_;          // including earlier runs
  std::optional<double> memory_wanted_;
  bool taught_cpu_ = false, taught_memory_ = false;  // whether earlier runs taught anything
  int earlier_runs_ = 0;
  double cpu_count_ = 0, memory_count_ = 0;  // samples of this run
};

Result<std::unique_ptr<Policy>> make_vpa(const PolicyArgs& making);
Result<std::unique_ptr<Policy>> make_vpa_tuned(const PolicyArgs& making);

}  // namespace cgphase
