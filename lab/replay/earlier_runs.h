// Learned state and courses of earlier runs of a service. A run serves the runs that began after it
// ended.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/learned_state.h"
#include "policy/policy_spec.h"

namespace cgphase {

class EarlierRuns {
 public:
  using Courses = std::vector<std::shared_ptr<const MemoryCourse>>;
  struct Known {
    LearnedState learned;                 // merged
    std::optional<double> usual_seconds;  // median length of the runs; absent: no runs
    Courses courses;                      // of the last kMostCourses runs that have one
  };

  static constexpr std::size_t kMostCourses = 100;
  // For training runs, which count as ended before all others.
  static constexpr double kBeforeAll = -std::numeric_limits<double>::infinity();

  // Call first, for each run that before() will be called for. State that no later run needs is
  // freed, because a run takes hundreds of kilobytes.
  void expect(const std::string& service, double begin_seconds);
  // A run of `service` ended at `end_seconds`, after `length_seconds`.
  void ended(const std::string& service, double end_seconds, double length_seconds,
             LearnedState learned, std::shared_ptr<const MemoryCourse> course = nullptr);
  // Returns what a run starting at `begin_seconds` may know. `begin_seconds` must not fall between
  // calls.
  Known before(const std::string& service, double begin_seconds);
  // Number of statistics in memory, of runs and of services.
  std::size_t kept() const;

 private:
  struct Run {
    double end_seconds = 0, length_seconds = 0;
    LearnedState learned;
    std::shared_ptr<const MemoryCourse> course;  // may be null
  };
  struct Service {
    std::size_t to_come = 0;      // runs to come; the last begins at:
    double last_begin = kBeforeAll;
    std::vector<Run> waiting;     // ended after every begin so far; ascending by end
    std::vector<double> lengths;  // ascending
    LearnedState learned;
    Courses courses;
  };
  std::map<std::string, Service> services_;
};

}  // namespace cgphase
