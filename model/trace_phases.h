// Phases of a recorded execution, from the same tracker that the daemon uses.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/phase.h"
#include "model/phase_tracker.h"
#include "model/trace_features.h"
#include "traces/trace.h"

namespace cgphase {

// The phases of one execution, row by row. The trace must be read with schema_columns() of the
// engine's model. Owned and used by one thread.
class PhaseFollower {
 public:
  explicit PhaseFollower(std::shared_ptr<const PhaseEngine> engine);

  // The phase at this row. Rows within a model step keep the phase of the last step.
  Phase add(const ExecutionHeader& execution, const TraceRow& row);
  // True if the last row completed a model step.
  bool stepped() const { return stepped_; }
  // Number of model steps so far, and whether any feature of the model was measured in one of them.
  std::uint64_t steps() const { return steps_; }
  bool measured() const { return tracker_.imputed_count() < steps_ * feature_count_; }

 private:
  std::uint64_t feature_count_, steps_ = 0;
  TraceFeatures features_;
  PhaseTracker tracker_;
  Phase current_;
  bool stepped_ = false;
};

// The phase at each row.
std::vector<Phase> tracked_phases(const std::shared_ptr<const PhaseEngine>& engine,
                                  const Execution& execution);

}  // namespace cgphase
