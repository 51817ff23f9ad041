// The limits of one cgroup as the kernel defines them (Documentation/admin-guide/cgroup-v2.rst).
// Absence is a value: an empty outer optional means that the file does not exist here. A limit of
// "max" is an empty inner optional, never a number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace cgphase {

// cpu.max: CPU time per period. No quota is "max".
struct CpuMax {
  std::optional<Microseconds> quota;
  Microseconds period{100'000};

  std::optional<Cores> cores() const {
    if (!quota || period.value == 0) return std::nullopt;
    return Cores{static_cast<double>(quota->value) / static_cast<double>(period.value)};
  }
  friend bool operator==(const CpuMax&, const CpuMax&) = default;
};

// cpu.weight, as the kernel bounds it.
inline constexpr std::uint32_t kSmallestWeight = 1;
inline constexpr std::uint32_t kLargestWeight = 10'000;

// memory.max, memory.high, memory.low, memory.min. No bytes is "max".
struct MemoryLimit {
  std::optional<Bytes> bytes;
  friend bool operator==(const MemoryLimit&, const MemoryLimit&) = default;
};

// The files that cgphase may write. Each has one row in control/ and one property test.
enum class Knob : std::uint8_t {
  cpu_max, cpu_max_burst, cpu_weight, memory_max, memory_high, cgroup_freeze
};
inline constexpr int kKnobCount = 6;

constexpr const char* file_name(Knob knob) {
  switch (knob) {
    case Knob::cpu_max: return "cpu.max";
    case Knob::cpu_max_burst: return "cpu.max.burst";
    case Knob::cpu_weight: return "cpu.weight";
    case Knob::memory_max: return "memory.max";
    case Knob::memory_high: return "memory.high";
    case Knob::cgroup_freeze: return "cgroup.freeze";
  }
  return "";
}

struct Limits {
  std::optional<CpuMax> cpu_max;
  std::optional<Microseconds> cpu_max_burst;
  std::optional<std::uint32_t> cpu_weight;
  std::optional<MemoryLimit> memory_max;
  std::optional<MemoryLimit> memory_high;
  std::optional<MemoryLimit> memory_low;
  std::optional<MemoryLimit> memory_min;
  // cgroup.freeze of this cgroup. An ancestor may be frozen, too.
  std::optional<bool> frozen;
  friend bool operator==(const Limits&, const Limits&) = default;

  // The limit in cores. Absent if the file is missing or contains "max".
  std::optional<Cores> cpu_cores() const {
    return cpu_max ? cpu_max->cores() : std::nullopt;
  }
  // The lower of memory.max and memory.high: the kernel keeps the cgroup near it. Absent if neither
  // is a number.
  std::optional<Bytes> memory_bytes() const {
    const auto hard = memory_max ? memory_max->bytes : std::nullopt;
    const auto soft = memory_high ? memory_high->bytes : std::nullopt;
    return hard && soft ? std::min(*hard, *soft) : hard ? hard : soft;
  }
};

}  // namespace cgphase
