// Phases of one container, step by step: scaler, fixed-point CRBM, nearest centroid.
#pragma once

#include <memory>

#include "model/feature_vector.h"
#include "model/model.h"
#include "model/phase.h"

namespace cgphase {

class CrbmFixed;

// The shared, read-only engine made from a model once (quantized weights, tables, error bound).
class PhaseEngine {
 public:
  static Result<std::shared_ptr<const PhaseEngine>> create(Model model);
  const Model& model() const;
  ~PhaseEngine();

 private:
  friend class PhaseTracker;
  PhaseEngine();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Holds the history of one container. The phase of a step uses that step (mode `correct` of
// SCIENCE.md section 2); a step nearer to the second centroid than twice the engine's error bound
// is unknown, as is one beyond the novelty bound.
class PhaseTracker {
 public:
  explicit PhaseTracker(std::shared_ptr<const PhaseEngine> engine);
  PhaseTracker(PhaseTracker&&) noexcept;
  PhaseTracker& operator=(PhaseTracker&&) noexcept;
  ~PhaseTracker();

  Phase step(const FeatureVector& vector);
  void reset();  // after a gap

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
