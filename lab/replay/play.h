// Replays one execution under one policy, sample by sample, as the daemon would see it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "lab/replay/earlier_runs.h"
#include "lab/replay/replay.h"
#include "policy/learned_state.h"

namespace cgphase {

struct PlayPlan {
  ReplaySettings settings;
  Contender contender;
  std::shared_ptr<const PhaseEngine> engine;  // null: no phases
  bool compat = false;                        // phases as AI4DL's release computes them
  LearnedState prior;                         // learned from earlier runs
  std::optional<double> job_seconds;          // how long earlier runs took
  EarlierRuns::Courses courses;               // of earlier runs
  std::shared_ptr<const std::vector<PhaseStatistics>> statistics;
  bool keep_limits = false;
};

struct Played {
  ExecutionResult result;
  LearnedState learned;
  std::shared_ptr<const MemoryCourse> course;  // null: no policy of this kind needs it
};

// Adds the limits after a sample to the checksum, and to the picture if it is wanted.
void keep_limits(double seconds, double cpu, double memory, bool keep, ExecutionResult& result);

// Replays the policy alone: its recommendation is in force at once, between a floor and the user's
// limit. Errors: invalid (make_policy).
Result<Played> play(const Execution& execution, const PlayPlan& plan);

// Replays the daemon's pipeline with its safety rules, which decides at each row. Safety rules and
// guard use the threshold of the loop. The engine's model must not use columns of traces. Errors:
// invalid.
Result<Played> play_with_rails(const Execution& execution, const PlayPlan& plan);

}  // namespace cgphase
