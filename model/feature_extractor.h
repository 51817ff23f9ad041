// Turns raw samples into feature vectors: rates, ratios, and one vector per model step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectors/sample.h"
#include "model/feature_vector.h"

namespace cgphase {

// The extractor of one container. A rate exists only between two samples of the same CgroupId whose
// counter did not fall. A gap of more than three sampling intervals, or a step backwards in time,
// is reported. Features of the kind `column` are always absent, because samples have no columns.
// Owned and used by one thread.
class FeatureExtractor {
 public:
  FeatureExtractor(const FeatureSchema& schema, double step_seconds);

  struct Step {
    std::optional<FeatureVector> vector;  // present when this sample completed a model step
    bool gap = false;                     // the history must start again
  };
  // `original` are the limits before cgphase changed any. `host` replaces a missing limit. A step
  // ends at the sample nearest to its full length; rates use its true length.
  Step add(const Sample& sample, MonotonicTime time, const Limits& original,
           const HostCapacity& host);

 private:
  // Growth of one counter since the step began; absent once it was missing or fell.
  struct Advance {
    Counter previous;
    std::optional<std::uint64_t> sum;
    void begin(const Counter& now);
    void add(const Counter& now);
  };
  // One of the counters that features are computed from.
  struct Followed {
    std::uint8_t place;  // an index of Place in feature_extractor.cpp
    Advance advance;
  };
  void follow(std::uint8_t place);
  std::optional<std::uint64_t> sum_of(std::uint8_t place) const;
  // Value x seconds since the step began; absent once the value was missing.
  struct Integral {
    std::optional<double> sum;
    void add(const std::optional<double>& value, double seconds);
  };

  void begin_step(const Sample& sample, MonotonicTime time);
  bool is_gap(const Sample& sample, double interval_seconds) const;
  void learn_interval(double seconds);
  std::optional<double> value(Feature feature, double seconds, const Sample& sample,
                              const Limits& original, const HostCapacity& host) const;
  std::optional<double> optional_value(Feature feature, double seconds) const;

  std::vector<Feature> features_;  // the features of the schema
  double step_seconds_;
  bool started_ = false;
  CgroupId id_;
  MonotonicTime step_begin_, last_time_;
  double interval_seconds_ = 0;     // usual interval between samples; 0 = not known yet
  std::vector<Followed> followed_;  // only those that these features need
  Integral gpu_, gpu_memory_;
  std::optional<Bytes> need_at_begin_;
};

}  // namespace cgphase
