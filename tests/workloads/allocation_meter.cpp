#include "tests/workloads/allocation_meter.h"

#include <algorithm>

#include "base/parse.h"

namespace cgphase::workloads {

namespace {

// Workloads start with limits, so "max" is an error. It counts as far more than any of the limits,
// so that it is visible.
constexpr double kUnlimitedCores = 1;
constexpr std::uint64_t kUnlimitedBytes = kGiB;

}  // namespace

std::optional<double> cores_of(std::string_view cpu_max, double host_cores) {
  std::string_view quota, period;
  if (!next_word(cpu_max, quota) || !next_word(cpu_max, period)) return std::nullopt;
  const auto period_usec = parse_u64(period);
  if (!period_usec || *period_usec == 0) return std::nullopt;
  if (quota == "max") return host_cores;
  const auto quota_usec = parse_u64(quota);
  if (!quota_usec) return std::nullopt;
  return static_cast<double>(*quota_usec) / static_cast<double>(*period_usec);
}

std::optional<std::uint64_t> bytes_of(std::string_view memory_max, std::uint64_t host_bytes) {
  if (memory_max == "max") return host_bytes;
  return parse_u64(memory_max);
}

void AllocationMeter::note_change(double seconds, const char* knob, const std::string& from,
                                  const std::string& to) {
  if (started_ && from != to) changes_.push_back({seconds - first_seconds_, knob, from, to});
}

void AllocationMeter::read(double seconds, const KnobTexts& knobs) {
  if (started_) end(seconds);
  note_change(seconds, "cpu.max", knobs_.cpu_max, knobs.cpu_max);
  note_change(seconds, "memory.max", knobs_.memory_max, knobs.memory_max);
  note_change(seconds, "memory.high", knobs_.memory_high, knobs.memory_high);
  if (!started_) first_seconds_ = last_seconds_ = seconds;
  started_ = true;
  knobs_ = knobs;
  cores_ = cores_of(knobs.cpu_max, kUnlimitedCores).value_or(cores_);
  const auto hard = bytes_of(knobs.memory_max, kUnlimitedBytes);
  if (hard) bytes_ = static_cast<double>(std::min(*hard, bytes_of(knobs.memory_high, *hard)
                                                             .value_or(*hard)));
}

void AllocationMeter::end(double seconds) {
  core_seconds_ += cores_ * (seconds - last_seconds_);
  byte_seconds_ += bytes_ * (seconds - last_seconds_);
  last_seconds_ = seconds;
}

}  // namespace cgphase::workloads
