// From raw samples to feature vectors: rates, ratios, and one vector per model step.
#pragma once

#include <optional>

#include "collectors/sample.h"
#include "model/feature_vector.h"

namespace cgphase {

// Of one container. A rate exists only between two samples of the same CgroupId whose counter did
// not fall; a gap of more than three sampling intervals, or one that goes backwards, is told.
class FeatureExtractor {
 public:
  FeatureExtractor(const FeatureSchema& schema, double step_seconds);

  struct Step {
    std::optional<FeatureVector> vector;  // present when this sample completed a model step
    bool gap = false;                     // history must begin anew
  };
  // `original` are the limits before cgphase changed any; `host` stands in where there is none.
  Step add(const Sample& sample, MonotonicTime time, const Limits& original,
           const HostCapacity& host);

 private:
  struct Point;
  FeatureSchema schema_;
  double step_seconds_;
};

}  // namespace cgphase
