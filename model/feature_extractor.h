// From raw samples to feature vectors: rates, ratios, and one vector per model step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectors/sample.h"
#include "model/feature_vector.h"

namespace cgphase {

// Of one container. A rate exists only between two samples of the same CgroupId whose counter did
// not fall; a gap of more than three sampling intervals, or one that goes backwards, is told.
// Features of the kind `column` are always absent: samples have no columns.
class FeatureExtractor {
 public:
  FeatureExtractor(const FeatureSchema& schema, double step_seconds);

  struct Step {
    std::optional<FeatureVector> vector;  // present when this sample completed a model step
    bool gap = false;                     // history must begin anew
  };
  // `original` are the limits before cgphase changed any; `host` stands in where there is none.
  // A step ends at the sample nearest to its full length; rates are over its true length.
  Step add(const Sample& sample, MonotonicTime time, const Limits& original,
           const HostCapacity& host);

 private:
  // How far one counter came since the step began; absent once it was missing or fell.
  struct Advance {
    Counter previous;
    std::optional<std::uint64_t> sum;
    void begin(const Counter& now);
    void add(const Counter& now);
  };
  // One of the counters that features are made of.
  struct Followed {
    std::uint8_t place;  // feature_extractor.cpp names them
    Advance advance;
  };
  void follow(std::uint8_t place);
  std::optional<std::uint64_t> sum_of(std::uint8_t place) const;
  // Value x seconds since the step began; absent once there was none.
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

  std::vector<Feature> features_;   // of the schema
  double step_seconds_;
  bool started_ = false;
  CgroupId id_;
  MonotonicTime step_begin_, last_time_;
  double interval_seconds_ = 0;  // how far apart samples usually are; 0 = not known yet
  std::vector<Followed> followed_;  // those that these features need
  Integral gpu_, gpu_memory_;
  std::optional<Bytes> need_at_begin_;
};

}  // namespace cgphase
