// One execution under one policy: the samples one after the other, as the daemon would see them.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/result.h"
#include "lab/replay/replay.h"

namespace cgphase {

struct PlayPlan {
  ReplaySettings settings;
  Contender contender;
  std::shared_ptr<const PhaseEngine> engine;  // null: no phases
  bool compat = false;                        // phases as AI4DL's release computes them
  nlohmann::json prior;                       // what earlier runs taught; null: nothing
  std::optional<double> job_seconds;          // how long earlier runs took
  std::shared_ptr<const std::vector<PhaseStatistics>> statistics;
  bool keep_limits = false;
};

struct Played {
  ExecutionResult result;
  nlohmann::json learned;  // of the policy
};

// The limits after a sample: into the checksum, and into the picture where they are asked for.
void keep_limits(double seconds, double cpu, double memory, bool keep, ExecutionResult& result);

// The policy alone: what it wants is in force at once, between a floor and the user's limit.
// Errors: invalid (make_policy).
Result<Played> play(const Execution& execution, const PlayPlan& plan);

// The daemon's pipeline with its rails: what it decides, at each row, is in force at once. Rails
// and guard have one threshold, that of the loop. The engine's model must not look at columns.
// Errors: invalid.
Result<Played> play_with_rails(const Execution& execution, const PlayPlan& plan);

}  // namespace cgphase
