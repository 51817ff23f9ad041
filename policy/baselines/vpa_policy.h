// `vpa` and `vpa-tuned`: the recommender of Kubernetes' vertical pod autoscaler
// (github.com/kubernetes/autoscaler, vertical-pod-autoscaler/pkg/recommender, release 1.x).
//
// Taken over: histograms whose buckets widen by 5 %, the first of 0.01 core or 10 MB wide; a
// half-life of 24 h; CPU samples that weigh as much as the request, at least 0.1 core (the limit
// stands for the request, and the length of the interval weighs too); of memory one peak per 24 h,
// filed at the end of those, the running one counted; after a lack of memory a peak of max(x 1.2,
// + 100 MiB) of what there was; the upper edge of the bucket of the 90th percentile x 1.15; the
// checkpoints, which later runs begin with.
//
// Left out: the least of 25 millicores and 250 MiB a pod; lower and upper bound with the updater,
// which acts on a running pod only outside of them (here each recommendation is in force at once,
// in VPA's favour); the fresh limits of a pod that starts again; one sample a minute (here each);
// forgetting of peaks older than eight days.
//
// Lack of memory: the need passed what the policy had last said. `vpa-tuned` is the same with
// half-life and interval of the peaks tuned to the job: `jobs` of its lengths, so that VPA's eight
// intervals are one job; where the length is not told, the window of the surroundings.
#pragma once

#include <optional>

#include "policy/phase/learned_usage.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kVpaParameters = {
    PolicyParameter{"quantile", 0.9, 0, 1},
    PolicyParameter{"margin", 1.15, 1, 10},
    PolicyParameter{"half-life", 86400, 1, 1e8},  // seconds, and the interval of the peaks
    PolicyParameter{"bump", 1.2, 1, 10},
    PolicyParameter{"bump-bytes", 104857600, 0, 1e12},
};
inline constexpr std::array kVpaTunedParameters = {
    PolicyParameter{"quantile", 0.9, 0, 1},
    PolicyParameter{"margin", 1.15, 1, 10},
    PolicyParameter{"jobs", 0.125, 0.001, 1000},  // half-life, in lengths of the job
    PolicyParameter{"bump", 1.2, 1, 10},
    PolicyParameter{"bump-bytes", 104857600, 0, 1e12},
};

// Buckets that widen by 5 %: bucket i begins at first * (1.05^i - 1) / 0.05. Those are buckets
// whose edges grow by 5 %, from 20 x first on, of values shifted by that much.
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

// One peak per interval. The running one is told apart, for it still grows.
class VpaMemoryPeaks {
 public:
  struct Peak {
    double bytes = 0, time_seconds = 0;
  };
  explicit VpaMemoryPeaks(double interval_seconds) : interval_(interval_seconds) {}

  // A sample of usage. The peak of an interval that it ends, if any.
  std::optional<Peak> add(double bytes, double time_seconds);
  // A lack of memory: the most that there was, of `in_force` and this interval's usage, decides.
  void bump(double in_force_bytes, double ratio, double least_bytes);
  std::optional<Peak> running() const;

 private:
  double interval_;
  std::optional<double> end_;  // absent before the first sample
  double usage_peak_ = 0, bumped_peak_ = 0;
};

class VpaPolicy final : public Policy {
 public:
  VpaPolicy(const PolicyMaking& making, double half_life_seconds);

  void observe(const Observation& observation) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  void observe_cpu(double cores, const Observation& observation);
  void observe_memory(double bytes, double time_seconds);
  void recommend_memory();

  std::string_view name_;
  UsageShapes shapes_;
  double quantile_, margin_, bump_, bump_bytes_;
  VpaMemoryPeaks peaks_;
  VpaHistogram own_cpu_, own_memory_;  // of this run; memory without the running peak
  VpaHistogram cpu_, memory_;          // of earlier runs, too
  std::optional<double> memory_wanted_;
  bool taught_cpu_ = false, taught_memory_ = false;  // by earlier runs
  int earlier_runs_ = 0;
  double cpu_count_ = 0, memory_count_ = 0;  // samples of this run
};

Result<std::unique_ptr<Policy>> make_vpa(const PolicyMaking& making);
Result<std::unique_ptr<Policy>> make_vpa_tuned(const PolicyMaking& making);
nlohmann::json merge_vpa(const nlohmann::json& earlier, const nlohmann::json& run);

}  // namespace cgphase
