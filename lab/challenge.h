// `cgphase model challenge`: compares a new model with the one in use on the newest history.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "lab/replay/replay.h"
#include "model/model.h"

namespace cgphase {

// At most this many of the newest rows are used. Training rows are kept as features, rows of
// earlier runs and held-out rows as a whole, together below half a GiB.
inline constexpr std::size_t kMostTrainingRows = 500'000;
inline constexpr std::size_t kMostTeachingRows = 100'000;
inline constexpr std::size_t kMostHeldOutRows = 100'000;
// A challenger must allocate at least this share less than the champion to win.
inline constexpr double kLeastGain = 0.01;

struct HistoryBounds {
  double held_out_ratio = 0.3;  // share of the rows, the newest
  double least_seconds = 86'400;  // from the first row to the last
  std::size_t most_training_rows = kMostTrainingRows, most_held_out_rows = kMostHeldOutRows;
  std::size_t most_teaching_rows = kMostTeachingRows;
};

// Rows in [begin, cut) are for training, rows in [cut, end] are held out. Rows in [teaching, cut)
// are earlier runs: each model learns phase statistics from them before the held-out rows are
// replayed, as in the daemon.
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
};

// Result of one model on the held-out part. Absent: that resource was not measured.
struct ChallengeSide {
  std::optional<ReplaySums> cpu, memory;
};

struct ChallengeReport {
  HistorySplit split;
  std::size_t windows = 0;     // trained on
  std::string too_little;      // why there was no comparison; empty: there was one
  ChallengeSide champion, challenger;
  std::string lost;            // why the challenger does not win; empty: it wins
  std::optional<Model> model;  // the challenger, if there was a comparison
};

// Returns the split; absent if there is too little history, with the reason in `why`. Errors: those
// of TraceReader; invalid (no row).
Result<std::optional<HistorySplit>> split_history(const std::vector<std::string>& traces,
                                                  const HistoryBounds& bounds, std::string& why);

// Returns why the challenger does not win; empty if it wins. To win, no resource may have more
// samples over the limit or more windows with an OOM, and the resources together must be allocated
// less.
std::string why_not_better(const ChallengeSide& champion, const ChallengeSide& challenger);

// Runs the comparison. The challenger uses the features and the step of the champion; everything
// else is as in `cgphase train`. Errors: those of the traces; invalid (the policy cannot be
// replayed, or the champion needs columns of traces).
Result<ChallengeReport> challenge(const Model& champion, const ChallengeOptions& options);

}  // namespace cgphase
