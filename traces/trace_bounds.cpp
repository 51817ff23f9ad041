#include "traces/trace_bounds.h"

#include <cstdio>

#include "base/text.h"

namespace cgphase {
namespace {

std::string number_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

Bound host_bound(double capacity, double tolerance, std::string_view unit) {
  return {capacity * tolerance, "above the host's", capacity, unit};
}

Bound limit_bound(double limit) { return {limit * kMostTimesLimit, "above 64 times its limit"}; }

}  // namespace

RowBounds row_bounds(double host_cores, double host_memory, double cpu_limit,
                     double memory_limit) {
  RowBounds bounds;
  if (host_cores > 0) bounds.cores = host_bound(host_cores, kCpuTolerance, "cores");
  else if (cpu_limit > 0 && cpu_limit * kMostTimesLimit < kMostHostCores)
    bounds.cores = limit_bound(cpu_limit);
  if (host_memory > 0) bounds.memory = host_bound(host_memory, kMemoryTolerance, "bytes");
  else if (memory_limit > 0 && memory_limit * kMostTimesLimit < kMostMemoryBytes)
    bounds.memory = limit_bound(memory_limit);
  return bounds;
}

void Impossible::add(std::string_view column, double value, std::uint64_t line,
                     const Bound& bound) {
  if (++count_ > 1) return;
  first_ = escape_name(column) + " " + number_of(value) + " at line " + std::to_string(line) +
           ", " + (value < 0 ? std::string("below zero") : std::string(bound.source));
  if (value < 0 || bound.capacity == 0) return;
  first_ += " " + number_of(bound.capacity) + " " + std::string(bound.unit);
  if (bound.capacity == 1) first_.pop_back();
}

std::string Impossible::note() const {
  if (count_ == 0) return {};
  if (count_ == 1) return "1 impossible value ignored: " + first_;
  return std::to_string(count_) + " impossible values ignored, the first: " + first_;
}

bool CounterGuard::takes(std::uint64_t value, double seconds, double most_per_second,
                         double jitter_seconds) {
  const auto goes_on = [&](const Reading& from) {
    return value >= from.value &&
           static_cast<double>(value - from.value) <=
               most_per_second * (seconds - from.seconds + jitter_seconds);
  };
  const bool began_anew = value < taken_.value;
  if (!began_anew && !goes_on(taken_) && !goes_on(refused_)) {
    refused_ = {value, seconds};
    return false;
  }
  *this = {};
  taken_ = {value, seconds};
  return true;
}

}  // namespace cgphase
