// Statistics of the same phases, counted on several hosts, added up.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

// What `a` and `b` counted together (Chan, Golub and LeVeque, COMPSTAT 1982). The larger novelty
// distance, within which at least 99 % of all lie; not known where one side does not know it.
PhaseSummary add_up(const PhaseSummary& a, const PhaseSummary& b);

// Errors: invalid, naming the first key in which the models find other phases.
Status check_same_phases(const Model& model, const std::string& name, const Model& other,
                         const std::string& other_name);

// Adds what `counted`, one per centroid, tells to the model's phases.
void add_statistics(Model& model, std::span<const PhaseSummary> counted);

// Of the windows of `data`, which are standardised by the model's scaler.
std::vector<PhaseSummary> count_phases(const Model& model, const Dataset& data);

}  // namespace cgphase
