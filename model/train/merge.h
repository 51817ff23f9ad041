// Adds statistics of the same phases that several hosts counted.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

// Adds the counts of `a` and `b` (Chan, Golub and LeVeque, COMPSTAT 1982). The result has the
// larger novelty distance, which covers at least 99 % of all samples. It is unknown if one side
// does not know its own.
PhaseSummary add_up(const PhaseSummary& a, const PhaseSummary& b);

// Checks that both models have the same phases. Errors: invalid, with the first key that differs.
Status check_same_phases(const Model& model, const std::string& name, const Model& other,
                         const std::string& other_name);

// Adds `counted`, one summary per centroid, to the model's phases.
void add_statistics(Model& model, std::span<const PhaseSummary> counted);

// Counts the phases of the windows of `data`, which are standardised by the model's scaler.
std::vector<PhaseSummary> count_phases(const Model& model, const Dataset& data);

}  // namespace cgphase
