// The numbers that the safety rules knew at a decision. They are stored with it for `explain`.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "collectors/sample.h"

namespace cgphase {

// Units: bytes, cores, seconds, or shares of time from 0 to 1. Rates and stalls are those of the
// last interval.
enum class Fact : std::size_t {
  cpu_cores,
  memory_need_bytes,
  memory_peak_need_bytes,     // within the lowering window
  memory_current_bytes,
  memory_growth_bytes_per_sec,
  cpu_some_avg10,             // PSI; absent on a kernel without it
  memory_some_avg10,
  memory_full_avg10,
  io_some_avg10,
  throttled_ratio,
  refaults_per_sec,
  major_faults_per_sec,
  floor,                      // the lowest limit that the safety rules would write, cores or bytes
  earlier_runs,               // runs of the image that saw this phase
  freeze_seconds,             // the longest time that it may be frozen
};
inline constexpr std::size_t kFactCount = 15;

// Names as used in JSON and, after "fact_", as columns of the journal.
constexpr const char* to_string(Fact fact) {
  constexpr const char* kNames[kFactCount] = {
      "cpu_cores",         "memory_need_bytes",           "memory_peak_need_bytes",
      "memory_current_bytes", "memory_growth_bytes_per_sec", "cpu_some_avg10",
      "memory_some_avg10", "memory_full_avg10",           "io_some_avg10",
      "throttled_ratio",   "refaults_per_sec",            "major_faults_per_sec",
      "floor",             "earlier_runs",                "freeze_seconds"};
  return kNames[static_cast<std::size_t>(fact)];
}

// A fact is absent if the kernel did not report it or if it does not apply.
struct Evidence {
  std::array<std::optional<double>, kFactCount> facts;

  std::optional<double>& operator[](Fact fact) { return facts[static_cast<std::size_t>(fact)]; }
  std::optional<double> operator[](Fact fact) const {
    return facts[static_cast<std::size_t>(fact)];
  }
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

// The facts of a single sample.
inline Evidence evidence_of(const Sample& sample) {
  Evidence evidence;
  if (const auto need = memory_need(sample))
    evidence[Fact::memory_need_bytes] = static_cast<double>(need->value);
  if (sample.memory_current)
    evidence[Fact::memory_current_bytes] = static_cast<double>(sample.memory_current->value);
  evidence[Fact::cpu_some_avg10] = sample.cpu_pressure.some.avg10_ratio;
  evidence[Fact::memory_some_avg10] = sample.memory_pressure.some.avg10_ratio;
  evidence[Fact::memory_full_avg10] = sample.memory_pressure.full.avg10_ratio;
  evidence[Fact::io_some_avg10] = sample.io_pressure.some.avg10_ratio;
  return evidence;
}

}  // namespace cgphase
