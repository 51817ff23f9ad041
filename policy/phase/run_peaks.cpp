#include "policy/phase/run_peaks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cgphase {
namespace {

constexpr double kMostPeak = 1e18;

std::optional<double> peak_number_at(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  if (!(value >= 0 && value <= kMostPeak)) return std::nullopt;
  return value;
}

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

nlohmann::json run_peaks_to_json(const RunPeaks& runs) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunPeak& run : runs)
    list.push_back({{"samples", run.samples},
                    {"cpu_cores", run.cpu_cores},
                    {"memory_bytes", run.memory_bytes},
                    {"memory_rise_bytes_per_sec", run.memory_rise_bytes_per_sec}});
  return list;
}

Result<RunPeaks> run_peaks_from_json(const nlohmann::json& json) {
  if (!json.is_array() || json.size() > kRunsKept) return refuse_peaks("no list of at most 8");
  RunPeaks runs;
  for (const auto& entry : json) {
    if (!entry.is_object()) return refuse_peaks("an entry is not an object");
    const auto samples = peak_number_at(entry, "samples"), cpu = peak_number_at(entry, "cpu_cores"),
               memory = peak_number_at(entry, "memory_bytes"),
               rise = peak_number_at(entry, "memory_rise_bytes_per_sec");
    if (!samples || !cpu || !memory || !rise)
      return refuse_peaks("a number is missing or out of range");
    runs.push_back({*samples, *cpu, *memory, *rise});
  }
  return runs;
}

}  // namespace cgphase
