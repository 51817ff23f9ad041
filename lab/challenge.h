// Champion and challenger: a model that is trained on the older part of a history, against the one
// in use, on the newest part, in replay. Pure but for the traces that are read; the same traces,
// champion and options give the same report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "lab/replay/replay.h"
#include "model/model.h"

namespace cgphase {

// The newest rows are taken. Of those to train on only features are kept in memory; those that
// teach and those held out are kept whole, below half a GiB together.
inline constexpr std::size_t kMostTrainingRows = 500'000;
inline constexpr std::size_t kMostTeachingRows = 100'000;
inline constexpr std::size_t kMostHeldOutRows = 100'000;
// A challenger that allocates only less than this less, relative to the champion, does not win.
inline constexpr double kLeastGain = 0.01;

struct HistoryBounds {
  double held_out_ratio = 0.3;  // of the rows, the newest
  double least_seconds = 86'400;  // from the first row to the last
  std::size_t most_training_rows = kMostTrainingRows, most_held_out_rows = kMostHeldOutRows;
  std::size_t most_teaching_rows = kMostTeachingRows;
};

// Rows from `begin` on and before `cut` are for training, from `cut` to `end` held out. Those from
// `teaching` on and before `cut` are earlier runs: what they teach of the phases of each model is
// known when the held-out ones are played, as in the daemon.
struct HistorySplit {
  WallTime begin, teaching, cut, end;
  std::size_t training_rows = 0, held_out_rows = 0;
};

struct ChallengeOptions {
  std::vector<std::string> traces;
  HistoryBounds bounds;
  PolicySpec policy;
  double risk = kShippedRisk;
  ClosedLoop loop{.enabled = true};
  int clusters = 6;         // or kAutomaticClusters
  std::uint64_t seed = 1;
};

// What one model did to the held-out part. Absent: that resource was not measured.
struct ChallengeSide {
  std::optional<ReplaySums> cpu, memory;
};

struct ChallengeReport {
  HistorySplit split;
  std::size_t windows = 0;     // trained on
  std::string too_little;      // why there was no contest; empty: there was one
  ChallengeSide champion, challenger;
  std::string lost;            // why the challenger does not win; empty: it wins
  std::optional<Model> model;  // the challenger, where there was a contest
};

// Absent, with the reason in `why`: too little. Errors: those of TraceReader, invalid (no row).
Result<std::optional<HistorySplit>> split_history(const std::vector<std::string>& traces,
                                                  const HistoryBounds& bounds, std::string& why);

// Why the challenger does not win; empty where it does: of no resource more samples over the limit
// or more windows that would have had an OOM, and less allocated over the resources together.
std::string why_not_better(const ChallengeSide& champion, const ChallengeSide& challenger);

// The challenger looks at the features of the champion at its step; the rest is as `cgphase train`
// has it. Errors: those of the traces; invalid (the policy cannot be replayed, the champion looks
// at columns).
Result<ChallengeReport> challenge(const Model& champion, const ChallengeOptions& options);

}  // namespace cgphase
