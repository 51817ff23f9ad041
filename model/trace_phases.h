// Phases of a recorded execution, by the same tracker that the daemon uses.
#pragma once

#include <memory>
#include <vector>

#include "model/phase.h"
#include "model/phase_tracker.h"
#include "model/trace.h"

namespace cgphase {

// The phase in force at each row; rows within a model step keep that of the last one. The trace was
// read with schema_columns() of the engine's model.
std::vector<Phase> tracked_phases(const std::shared_ptr<const PhaseEngine>& engine,
                                  const Execution& execution);

}  // namespace cgphase
