// What earlier runs of one image tell about the twelve numbers of the next (model/bursts.h), and
// how well they told them so far. Kept per image as JSON, like what policies learn; pure.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/bursts.h"

namespace cgphase {

// The newest runs whose numbers are kept one by one beside what was made of all of them.
inline constexpr std::size_t kBurstRunsKept = 16;

// Of one number of the next run.
struct BurstPrediction {
  double value = 0;   // mean over earlier runs, weighted by how many segments each had
  double runs = 0;    // that had any
  double count = 0;   // segments in all of them
  // Standard deviation of the runs' means about it, weighted alike: how far off a run is to be
  // expected. Absent below two runs.
  std::optional<double> deviation;
  // Mean of |prediction - truth| / truth over the runs that were predicted from those before them.
  std::optional<double> relative_error;
  double predicted_runs = 0;
};

class BurstHistory {
 public:
  // A run that ended. Numbers of which it had none change nothing.
  void add(const RunBursts& run);
  // Absent while no run had any.
  std::optional<BurstPrediction> predict(std::size_t source, std::size_t number) const;
  bool empty() const { return runs_.empty(); }

  // {"schema":1, "numbers":{SOURCE:{NUMBER:{..}}}, "runs":[{SOURCE:{NUMBER:[count,mean,squares]}}]}
  nlohmann::json to_json() const;
  // Errors: invalid, naming what is wrong.
  static Result<BurstHistory> from_json(const nlohmann::json& json);

 private:
  struct Number {
    double runs = 0, count = 0, mean = 0, squares = 0;  // squares: of runs' means, weighted
    double predicted = 0, error_sum = 0;
    void add(const Moments& run);
  };
  std::array<std::array<Number, kBurstNumbers>, kBurstSources> numbers_;
  std::vector<RunBursts> runs_;  // the newest kBurstRunsKept, oldest first
};

// {"gpu_utilisation": {"idle_seconds": {"value","deviation","relative_error","runs","segments",
// "predicted_runs"}, ...}, ...}; null for what no run told.
nlohmann::json predictions_to_json(const BurstHistory& history);

}  // namespace cgphase
