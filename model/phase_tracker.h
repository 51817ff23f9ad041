// Recognises the phases of one container, step by step: scaler, fixed-point CRBM, nearest centroid
// or path.
#pragma once

#include <cstdint>
#include <memory>

#include "model/feature_vector.h"
#include "model/model.h"
#include "model/phase.h"

namespace cgphase {

// A step is novel, and its phase unknown, if it is far from its centroid. The bound is this factor
// times the novelty distance of the phase (squared distances: 4 is twice as far), and at least the
// floor per hidden unit. If the novelty distance in the model is 0, there is no bound.
inline constexpr double kNoveltyFactor = 4;
inline constexpr double kNoveltyFloorPerUnit = 0.001;

// The shared, read-only engine that is built once from a model (quantized weights, tables, error
// bound). Any thread may use it.
class PhaseEngine {
 public:
  // Errors: invalid (the model does not pass check_model).
  static Result<std::shared_ptr<const PhaseEngine>> create(Model model);
  const Model& model() const;
  ~PhaseEngine();

 private:
  friend class PhaseTracker;
  PhaseEngine();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Keeps the history of one container. The phase of a step includes that step; the released AI4DL
// code omits it (docs/internals/model-file.md). The phase is the nearest one, or the one on the
// path if the model has a switch cost (phase_path.h). A step is unknown if the fixed point does not
// certify its phase, or if it exceeds the novelty bound. A step without any measured feature ends
// the history like a gap. One thread per tracker.
class PhaseTracker {
 public:
  explicit PhaseTracker(std::shared_ptr<const PhaseEngine> engine);
  PhaseTracker(PhaseTracker&&) noexcept;
  PhaseTracker& operator=(PhaseTracker&&) noexcept;
  ~PhaseTracker();

  // `vector` has one value per feature of the model's schema.
  Phase step(const FeatureVector& vector);
  void reset();  // after a gap

  // Number of values since the start that were absent or not finite and were replaced by the
  // training mean.
  std::uint64_t imputed_count() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
