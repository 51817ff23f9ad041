// Reads phase sequences that were labelled before, from a file (docs/internals/lab.md).
#pragma once

#include <string>

#include "base/result.h"
#include "model/phase_sequence.h"

namespace cgphase {

// Adds the executions of a CSV file with the columns `phase_runs(phase:length)` (or `phase_runs`),
// `exec` and `n_samples` in any order. The last two may be missing. Errors: not_found, denied, io,
// and invalid with file, line, column and reason. After an error `sequences` contains a part of the
// file.
Status read_phase_sequences(const std::string& path, PhaseSequences& sequences);

}  // namespace cgphase
