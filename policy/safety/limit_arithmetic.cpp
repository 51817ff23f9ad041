#include "policy/safety/limit_arithmetic.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/check.h"
#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kCpuStepRatio = 0.10;
constexpr double kCpuStepCores = 2;
constexpr double kReactions = 4;            // allocation rate x 4 x reaction time
constexpr double kSmallLimitBytes = kGiB;   // below it the fixed headroom becomes a share
constexpr double kSmallHeadroomRatio = 0.25;
constexpr double kHeadroomRatio = 0.10;
constexpr double kColdCacheShare = 0.5;     // share that one step may leave for reclaim
constexpr std::uint32_t kWeightFactor = 10;
// People write multiples of these.
constexpr std::uint64_t kRoundQuota = 10;  // microseconds
constexpr std::uint64_t kRoundMemory = kMiB;
constexpr std::uint32_t kRoundWeight = 10;

// `value`, or `value + step` if it is a multiple of `round` that nobody asked for.
std::uint64_t not_round(std::uint64_t value, std::uint64_t round, std::uint64_t step, bool asked) {
  return !asked && value % round == 0 ? value + step : value;
}

std::uint64_t page_up(double bytes) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(std::max(bytes, 0.0)));
  return (whole + kPageBytes - 1) / kPageBytes * kPageBytes;
}

double finite_bytes(const std::optional<MemoryLimit>& limit) {
  return limit && limit->bytes ? static_cast<double>(limit->bytes->value) : 0;
}

}  // namespace

std::optional<double> cpu_in_force(const Limits& limits, const HostCapacity& host) {
  if (!limits.cpu_max) return std::nullopt;
  return cpu_ceiling_cores(limits, host);
}

std::optional<double> memory_in_force(const Limits& limits, const HostCapacity& host) {
  if (!limits.memory_max && !limits.memory_high) return std::nullopt;
  return memory_ceiling_bytes(limits, host);
}

namespace {

// The original of a knob that both have, else the value of `limits`.
template <class Value>
std::optional<Value> original_of(std::optional<Value> Limits::*knob, const Limits& limits,
                                 const Limits& original) {
  return limits.*knob && original.*knob ? original.*knob : limits.*knob;
}

struct CpuKnobs {
  std::optional<CpuMax> max;
  std::optional<Microseconds> burst;
};

CpuKnobs original_cpu(const Limits& limits, const Limits& original) {
  CpuKnobs knobs{limits.cpu_max, limits.cpu_max_burst};
  if (knobs.max && original.cpu_max) knobs.max = original.cpu_max;
  if (knobs.burst && original.cpu_max_burst) knobs.burst = original.cpu_max_burst;
  // The kernel refuses a burst above the quota, and somebody else may have set only the quota.
  if (knobs.max && knobs.max->quota && knobs.burst)
    knobs.burst = std::min(*knobs.burst, *knobs.max->quota);
  return knobs;
}

}  // namespace

Limits with_original(const Limits& limits, const Limits& original, Resource resource) {
  Limits result = limits;
  if (resource == Resource::memory) {
    result.memory_high = original_of(&Limits::memory_high, limits, original);
    return result;
  }
  if (resource == Resource::cpu_weight) {
    result.cpu_weight = original_of(&Limits::cpu_weight, limits, original);
    return result;
  }
  if (resource == Resource::freeze) {
    result.frozen = original_of(&Limits::frozen, limits, original);
    return result;
  }
  const CpuKnobs knobs = original_cpu(limits, original);
  result.cpu_max = knobs.max;
  result.cpu_max_burst = knobs.burst;
  return result;
}

bool is_original(const Limits& limits, const Limits& original, Resource resource) {
  const auto known = [&](auto knob) { return original_of(knob, limits, original); };
  if (resource == Resource::memory)
    return known(&Limits::memory_high) == limits.memory_high;
  if (resource == Resource::cpu_weight)
    return known(&Limits::cpu_weight) == limits.cpu_weight;
  if (resource == Resource::freeze) return known(&Limits::frozen) == limits.frozen;
  const auto max = known(&Limits::cpu_max);
  if (max != limits.cpu_max) return false;
  const auto burst = known(&Limits::cpu_max_burst);
  if (burst == limits.cpu_max_burst && !(burst && max && max->quota)) return true;
  return original_cpu(limits, original).burst == limits.cpu_max_burst;
}

bool all_original(const Limits& limits, const Limits& original) {
  return original_of(&Limits::memory_max, limits, original) == limits.memory_max &&
         std::ranges::all_of(std::array{Resource::cpu, Resource::memory, Resource::cpu_weight,
                                        Resource::freeze},
                             [&](Resource one) { return is_original(limits, original, one); });
}

Limits with_cpu(const Limits& limits, const Limits& original, const HostCapacity& host,
                double cores, bool asked) {
  CHECK_INVARIANT(limits.cpu_max && original.cpu_max);
  const double ceiling = cpu_ceiling_cores(original, host);
  if (!(cores < ceiling)) return with_original(limits, original, Resource::cpu);
  const Microseconds period = limits.cpu_max->period;
  const double quota = std::ceil(std::max(cores, 0.0) * static_cast<double>(period.value));
  const std::uint64_t usec = not_round(static_cast<std::uint64_t>(quota), kRoundQuota, 1, asked);
  if (static_cast<double>(usec) >= ceiling * static_cast<double>(period.value))
    return with_original(limits, original, Resource::cpu);
  Limits result = limits;
  result.cpu_max = CpuMax{Microseconds{usec}, period};
  if (limits.cpu_max_burst && original.cpu_max_burst)
    result.cpu_max_burst = std::min(*original.cpu_max_burst, *result.cpu_max->quota);
  return result;
}

Limits with_memory(const Limits& limits, const Limits& original, const HostCapacity& host,
                   double bytes, bool asked) {
  const std::uint64_t wanted = not_round(page_up(bytes), kRoundMemory, kPageBytes, asked);
  const bool settable = limits.memory_high && original.memory_high;
  if (!settable || static_cast<double>(wanted) >= memory_ceiling_bytes(original, host))
    return with_original(limits, original, Resource::memory);
  Limits result = limits;
  result.memory_high = MemoryLimit{Bytes{wanted}};
  return result;
}

Limits with_granted(const Limits& limits, Resource resource, double amount) {
  Limits result = limits;
  if (resource == Resource::memory) {
    result.memory_max =
        MemoryLimit{Bytes{not_round(page_up(amount), kRoundMemory, kPageBytes, false)}};
    return result;
  }
  CHECK_INVARIANT(limits.cpu_max);
  const Microseconds period = limits.cpu_max->period;
  const auto usec = static_cast<std::uint64_t>(amount * static_cast<double>(period.value));
  result.cpu_max = CpuMax{Microseconds{not_round(usec, kRoundQuota, 1, false)}, period};
  return result;
}

Limits with_own(const Limits& limits, const Limits& original, Resource resource) {
  Limits result = limits;
  if (resource == Resource::memory) result.memory_max = original.memory_max;
  else result.cpu_max = original.cpu_max;
  return result;
}

double cpu_floor(const SafetyConfig& config, const Limits& limits, double usage_p99_cores) {
  CHECK_INVARIANT(limits.cpu_max);
  const double period = std::max(static_cast<double>(limits.cpu_max->period.value), 1.0);
  return std::max(usage_p99_cores * config.cpu_headroom_ratio,
                  static_cast<double>(config.cpu_floor_usec_per_period) / period);
}

double lowered_cpu(double in_force, double floor_cores, double cores) {
  const double step = std::max(kCpuStepRatio * in_force, kCpuStepCores);
  return std::max({cores, floor_cores, in_force - step});
}

double memory_headroom(const SafetyConfig& config, double limit_bytes, double bytes_per_sec) {
  const double fixed = limit_bytes < kSmallLimitBytes
                           ? kSmallHeadroomRatio * limit_bytes
                           : static_cast<double>(config.memory_headroom_bytes);
  const double reaction = std::chrono::duration<double>(config.reaction_time).count();
  return std::max({fixed, kHeadroomRatio * limit_bytes, bytes_per_sec * kReactions * reaction});
}

namespace {

double state_headroom(const SafetyConfig& config, const MemoryState& state) {
  return state.margin_factor * memory_headroom(config, state.limit_bytes, state.bytes_per_sec);
}

}  // namespace

double memory_floor(const SafetyConfig& config, const Limits& limits, const MemoryState& state) {
  const double peak = config.memory_headroom_ratio +
                      (config.memory_headroom_ratio - 1) * (state.margin_factor - 1);
  return std::max({state.peak_bytes * peak, state.need_bytes + state_headroom(config, state),
                   state.oom_floor_bytes, state.least_bytes, finite_bytes(limits.memory_min),
                   finite_bytes(limits.memory_low)});
}

double lowered_memory(const SafetyConfig& config, const Limits& limits, const MemoryState& state,
                      double bytes) {
  const double floor = memory_floor(config, limits, state);
  const double kept = state.current_bytes - kColdCacheShare * state.cold_cache_bytes;
  const double room = kept + config.cache_room_ratio * state.limit_bytes;
  const double target = std::max({bytes, floor, room});
  return state.long_step ? target
                         : std::max(target, state.limit_bytes * (1 - config.memory_step_ratio));
}

std::uint32_t weight_of(ServiceClass service_class, std::uint32_t original) {
  switch (service_class) {
    case ServiceClass::critical:
      return std::max(original, std::min(original * kWeightFactor, kLargestWeight) - 1);
    case ServiceClass::standard: return original;
    case ServiceClass::batch: {
      const std::uint32_t tenth = original / kWeightFactor + 1;
      return std::min(original, tenth % kRoundWeight == 0 ? tenth + 1 : tenth);
    }
  }
  return original;
}

}  // namespace cgphase
