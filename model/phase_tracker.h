// Phases of one container, step by step: scaler, fixed-point CRBM, nearest centroid or path.
#pragma once

#include <cstdint>
#include <memory>

#include "model/feature_vector.h"
#include "model/model.h"
#include "model/phase.h"

namespace cgphase {

// A step is novel, and its phase unknown, when it lies farther from its centroid than this times
// the novelty distance of that phase (squared distances: 4 is twice as far), but never within the
// floor per hidden unit. A novelty distance of 0 in the model means: no bound known.
inline constexpr double kNoveltyFactor = 4;
inline constexpr double kNoveltyFloorPerUnit = 0.001;

// The shared, read-only engine made from a model once (quantized weights, tables, error bound).
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

// Holds the history of one container. The phase of a step uses that step (the released AI4DL code
// leaves it out, docs/internals/model-file.md). It is the nearest one, or where the model has a
// switch cost the one on the path (phase_path.h). A step whose phase the fixed point does not
// certify is unknown, as is one beyond the novelty bound. A step that measured no feature at all
// tells nothing: it ends the history like a gap.
class PhaseTracker {
 public:
  explicit PhaseTracker(std::shared_ptr<const PhaseEngine> engine);
  PhaseTracker(PhaseTracker&&) noexcept;
  PhaseTracker& operator=(PhaseTracker&&) noexcept;
  ~PhaseTracker();

  // `vector` has one value per feature of the model's schema.
  Phase step(const FeatureVector& vector);
  void reset();  // after a gap

  // Values that were absent or not finite and stood in as the training mean, since the start.
  std::uint64_t imputed_count() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
