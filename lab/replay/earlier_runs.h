// What earlier runs of a service taught: each serves the runs that began after it ended.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cgphase {

class EarlierRuns {
 public:
  struct Known {
    nlohmann::json learned;              // merged; null where nothing was
    std::optional<double> usual_seconds;  // median length of the runs; absent where there were none
  };

  // For runs that were over before all others, however late they ended.
  static constexpr double kBeforeAll = -std::numeric_limits<double>::infinity();

  // Beforehand, for each run of which before() will be asked. What no run to come may know is
  // forgotten, for it is much: hundreds of kilobytes for a run.
  void expect(const std::string& service, double begin_seconds);
  // A run of `service` ended at `end_seconds`, after `length_seconds`.
  void ended(const std::string& service, double end_seconds, double length_seconds,
             nlohmann::json learned);
  // What a run that was expected to begin at `begin_seconds` may know. That does not fall from one
  // call to the next.
  Known before(const std::string& service, double begin_seconds);
  // Statistics that are held in memory, of runs and of services.
  std::size_t kept() const;

 private:
  struct Run {
    double end_seconds = 0, length_seconds = 0;
    nlohmann::json learned;
  };
  struct Service {
    std::size_t to_come = 0;      // runs, the last of which begins at:
    double last_begin = kBeforeAll;
    std::vector<Run> waiting;     // ended later than any begin so far; ascending by their end
    std::vector<double> lengths;  // ascending
    nlohmann::json learned;
  };
  std::map<std::string, Service> services_;
};

}  // namespace cgphase
