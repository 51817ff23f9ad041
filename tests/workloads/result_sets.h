// The sets of executions on which results.md compares policies.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/phase_tracker.h"
#include "traces/trace.h"

namespace cgphase::workloads {

struct ResultSet {
  std::string name;    // of its figures
  std::string title;
  bool service = false;        // else batch or training jobs
  double window_seconds = 600; // of the oracle and of the policies that use a window
  std::vector<Execution> executions, training;  // as in ReplayInput
};

struct ResultPlaces {
  std::string recorded;  // the directory of our own recordings
  std::string others;    // that of the public traces; empty: left out
};

// All sets that exist. Both engines decide which columns are read. Errors: those of the traces.
Result<std::vector<ResultSet>> read_result_sets(const ResultPlaces& places,
                                                const std::vector<std::string>& columns);

}  // namespace cgphase::workloads
