#include "policy/phase/run_peaks.h"

#include <algorithm>
#include <string>

namespace cgphase {
namespace {

constexpr double kMostPeak = 1e18;

bool is_peak(double value) { return value >= 0 && value <= kMostPeak; }

std::unexpected<Error> refuse_peaks(const char* why) {
  return failure(ErrorKind::invalid, std::string("peaks of runs: ") + why);
}

}  // namespace

void add_runs(RunPeaks& earlier, const RunPeaks& later) {
  earlier.insert(earlier.end(), later.begin(), later.end());
  if (earlier.size() > kRunsKept)
    earlier.erase(earlier.begin(), earlier.end() - static_cast<std::ptrdiff_t>(kRunsKept));
}

RunPeak highest_of(const RunPeaks& runs) {
  RunPeak highest;
  for (const RunPeak& run : runs) {
    highest.samples += run.samples;
    highest.cpu_cores = std::max(highest.cpu_cores, run.cpu_cores);
    highest.memory_bytes = std::max(highest.memory_bytes, run.memory_bytes);
    highest.memory_rise_bytes_per_sec =
        std::max(highest.memory_rise_bytes_per_sec, run.memory_rise_bytes_per_sec);
  }
  return highest;
}

Status check_run_peaks(const RunPeaks& runs) {
  if (runs.size() > kRunsKept) return refuse_peaks("more than 8");
  for (const RunPeak& run : runs)
    if (!is_peak(run.samples) || !is_peak(run.cpu_cores) || !is_peak(run.memory_bytes) ||
        !is_peak(run.memory_rise_bytes_per_sec))
      return refuse_peaks("a number is out of range");
  return {};
}

}  // namespace cgphase
