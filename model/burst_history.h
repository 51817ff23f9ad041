// Predicts the twelve burst numbers of the next run of an image (model/bursts.h) from earlier runs,
// and measures its own error. Kept per image as JSON, like the statistics of policies. Pure: no
// clock and no I/O.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/bursts.h"

namespace cgphase {

// The number of newest runs that are kept individually, in addition to the totals over all runs.
inline constexpr std::size_t kBurstRunsKept = 16;

// Prediction of one number of the next run.
struct BurstPrediction {
  double value = 0;   // mean over earlier runs, weighted by how many segments each had
  double runs = 0;    // runs with at least one segment
  double count = 0;   // segments in all of them
  // Standard deviation of the runs' means from `value`, with the same weights: the expected error
  // of a run. Absent for fewer than two runs.
  std::optional<double> deviation;
  // Mean of |prediction - truth| / truth over the runs that were predicted from earlier runs.
  std::optional<double> relative_error;
  double predicted_runs = 0;
};

class BurstHistory {
 public:
  // Adds a finished run. Numbers without a segment change nothing.
  void add(const RunBursts& run);
  // Absent while no run had a segment.
  std::optional<BurstPrediction> predict(std::size_t source, std::size_t number) const;
  bool empty() const { return runs_.empty(); }

  // {"schema":1, "numbers":{SOURCE:{NUMBER:{..}}}, "runs":[{SOURCE:{NUMBER:[count,mean,squares]}}]}
  nlohmann::json to_json() const;
  // Errors: invalid, with the reason.
  static Result<BurstHistory> from_json(const nlohmann::json& json);

 private:
  struct Number {
    // Squares: weighted sum of squares of runs' means.
    double runs = 0, count = 0, mean = 0, squares = 0;
    double predicted = 0, error_sum = 0;
    void add(const Moments& run);
  };
  std::array<std::array<Number, kBurstNumbers>, kBurstSources> numbers_;
  std::vector<RunBursts> runs_;  // the newest kBurstRunsKept, oldest first
};

// {"gpu_utilisation": {"idle_seconds": {"value","deviation","relative_error","runs","segments",
// "predicted_runs"}, ...}, ...}; null for a number that no run had.
nlohmann::json predictions_to_json(const BurstHistory& history);

}  // namespace cgphase
