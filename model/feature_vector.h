// The input of the CRBM: the features of one container in one model step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgphase {

// One feature of a schema. Ratios are relative to the container's own original limit, or to the
// host if it has no limit. So a model sees behaviour, not size.
enum class Feature : std::uint8_t {
  cpu_usage_ratio,        // cores used / original limit
  memory_need_ratio,      // need / original limit
  memory_growth_per_sec,  // d(need)/dt / original limit, 1/s
  page_fault_log_rate,    // log1p(faults per second)
  disk_read_log_rate,     // log1p(bytes per second)
  disk_write_log_rate,    // log1p(bytes per second)
  column,                 // a trace column by name (imported AI4DL models)
  cpu_usage_log_ratio,    // log(cpu_usage_ratio + kLogRatioFloor)
  memory_need_log_ratio,  // log(memory_need_ratio + kLogRatioFloor)
  // The rest are optional inputs: not every host counts them (is_optional()).
  run_queue_wait_ratio,          // time its threads waited for a CPU / (waited + ran)
  voluntary_switch_log_rate,     // log1p(switches per second)
  involuntary_switch_log_rate,   // log1p(switches per second)
  network_receive_log_rate,      // log1p(bytes per second)
  network_transmit_log_rate,     // log1p(bytes per second)
  block_latency_log_usec,        // log1p(mean latency of a request); 0 without requests
  gpu_utilisation_ratio,         // mean over the step, 1 = one GPU
  gpu_memory_utilisation_ratio,  // mean over the step
};

// Added to a ratio before its logarithm is taken. So 0 is finite, and changes far below a hundredth
// of the limit make no difference. Exact in binary.
inline constexpr double kLogRatioFloor = 0x1p-7;

struct FeatureSchema {
  struct Entry {
    Feature feature = Feature::column;
    std::string name;  // "cpu_usage_ratio", or the column's name
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;
  friend bool operator==(const FeatureSchema&, const FeatureSchema&) = default;
};

// Values in schema order. The scaler replaces an absent value by the training mean and counts it.
// It is never taken as zero.
struct FeatureVector {
  std::vector<std::optional<double>> values;
};

}  // namespace cgphase
