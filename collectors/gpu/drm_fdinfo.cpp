#include "collectors/gpu/drm_fdinfo.h"

#include <algorithm>
#include <array>

#include "base/parse.h"

namespace cgphase {
namespace {

// Parses "NUMBER [UNIT]" with a known unit.
Counter scaled_number(std::string_view value) {
  std::string_view number, unit;
  if (!next_word(value, number)) return std::nullopt;
  const Counter count = parse_u64(number);
  if (!count || !next_word(value, unit) || unit == "ns" || unit == "B") return count;
  const std::uint64_t scale = unit == "KiB"   ? 1024
                              : unit == "MiB" ? kMiB
                              : unit == "GiB" ? kGiB
                                              : 0;
  if (scale == 0 || *count > UINT64_MAX / scale) return std::nullopt;
  return *count * scale;
}

// Removes `prefix` from `text`.
bool cut(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

DrmEngine* engine_of(DrmFdinfo& info, std::string_view name) {
  const auto found = info.engines.find(name);
  if (found != info.engines.end()) return &found->second;
  if (info.engines.size() == kMostEngines) return nullptr;
  return &info.engines[std::string(name)];
}

// The keys of a memory region, the best first: resident memory, not reserved memory.
constexpr std::array<std::string_view, 3> kMemoryKeys = {"drm-resident-", "drm-memory-",
                                                         "drm-total-"};

// True for memory of the GPU itself. Other regions ("gtt", "system0", "stolen") are memory of the
// host.
bool is_device_memory(std::string_view region) {
  return region.starts_with("vram") || region.starts_with("local");
}

using Regions = std::map<std::string, std::array<Counter, kMemoryKeys.size()>, std::less<>>;

void take_memory(std::string_view key, std::string_view value, Regions& regions) {
  for (std::size_t i = 0; i < kMemoryKeys.size(); ++i) {
    std::string_view region = key;
    if (!cut(region, kMemoryKeys[i]) || !is_device_memory(region)) continue;
    if (regions.size() < kMostEngines || regions.contains(region))
      regions[std::string(region)][i] = scaled_number(value);
  }
}

void take_engine(std::string_view key, std::string_view value, DrmFdinfo& info) {
  const auto set = [&](Counter DrmEngine::*field) {
    if (DrmEngine* const engine = engine_of(info, key)) engine->*field = scaled_number(value);
  };
  if (cut(key, "drm-engine-capacity-")) {
    const Counter capacity = scaled_number(value);
    DrmEngine* const engine = capacity.value_or(0) == 0 ? nullptr : engine_of(info, key);
    if (engine != nullptr) engine->capacity = *capacity;
  } else if (cut(key, "drm-engine-")) {
    set(&DrmEngine::busy_ns);
  } else if (cut(key, "drm-total-cycles-")) {
    set(&DrmEngine::total_cycles);
  } else if (cut(key, "drm-cycles-")) {
    set(&DrmEngine::busy_cycles);
  }
}

std::optional<Bytes> sum_of(const Regions& regions) {
  std::optional<Bytes> sum;
  for (const auto& [region, values] : regions) {
    const auto best = std::ranges::find_if(values, [](const Counter& one) { return bool(one); });
    if (best != values.end()) sum = Bytes{sum.value_or(Bytes{}).value + **best};
  }
  return sum;
}

std::optional<double> engine_ratio(const DrmEngine& before, const DrmEngine& now,
                                   double elapsed_ns) {
  if (const Counter busy = growth(now.busy_ns, before.busy_ns); busy && elapsed_ns > 0)
    return static_cast<double>(*busy) / (elapsed_ns * static_cast<double>(now.capacity));
  const Counter busy = growth(now.busy_cycles, before.busy_cycles);
  const Counter total = growth(now.total_cycles, before.total_cycles);
  if (!busy || total.value_or(0) == 0) return std::nullopt;
  return static_cast<double>(*busy) /
         (static_cast<double>(*total) * static_cast<double>(now.capacity));
}

}  // namespace

std::optional<DrmFdinfo> scan_drm_fdinfo(std::string_view text) {
  DrmFdinfo info;
  Regions regions;
  std::string_view line;
  while (next_line(text, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with("drm-")) continue;
    const std::string_view key = line.substr(0, colon), value = trim(line.substr(colon + 1));
    if (key == "drm-driver") info.driver = value;
    else if (key == "drm-pdev") info.pci_address = value;
    else if (key == "drm-client-id") info.client_id = parse_u64(value);
    else take_memory(key, value, regions), take_engine(key, value, info);
  }
  if (info.driver.empty() || !info.client_id) return std::nullopt;
  info.memory = sum_of(regions);
  return info;
}

std::optional<double> busy_ratio(const DrmFdinfo& before, const DrmFdinfo& now,
                                 double elapsed_ns) {
  std::optional<double> busiest;
  for (const auto& [name, engine] : now.engines) {
    const auto earlier = before.engines.find(name);
    if (earlier == before.engines.end()) continue;
    if (const auto ratio = engine_ratio(earlier->second, engine, elapsed_ns))
      busiest = std::max(busiest.value_or(0), *ratio);
  }
  // The time is read slightly before or after the counters.
  if (busiest) busiest = std::min(*busiest, 1.0);
  return busiest;
}

}  // namespace cgphase
