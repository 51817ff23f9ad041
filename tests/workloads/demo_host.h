// Judges the first two parts of scripts/demo: runs of bench/host. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/workloads/demo_summary.h"

namespace cgphase::workloads {

// The demo fails beyond these. They leave room below what bench/host/run shows with longer runs,
// which is 95 % of the work and 0.52 of the time: the demo has one short run per arm.
// p99 of the service beside the batch job, against alone; the job's CPU time, against free:
inline constexpr double kLargestP99Ratio = 1.25, kLeastBatchShare = 0.85;
// Time until the last job ends, against admission by the owners' limits:
inline constexpr double kLargestMakespanRatio = 0.65;
// The service alone. It is 51 to 55 ms if the machine has an idle processor for the guest.
inline constexpr double kLargestP99AloneMs = 150;

class DemoHost {
 public:
  // Takes one line that bench/host/run printed. Returns a sentence for it, empty for a line of
  // medians. Errors: invalid (no line of bench/host/run).
  Result<std::string> add(std::string_view line);
  std::vector<Requirement> requirements() const;
  // The numbers of the last sentence; empty if a run is missing.
  std::string numbers() const;

 private:
  std::string served(const std::string& arm) const;
  std::string queued(const std::string& arm) const;
  // The ratio of one number in two arms of `share` or `pack`; 0 if a run is missing.
  double ratio(const char* arm, const char* other, const char* key) const;

  // By arm. Both experiments have an arm `cgphase`: that of `pack` is here `fit`.
  std::map<std::string, nlohmann::json> runs_;
};

}  // namespace cgphase::workloads
