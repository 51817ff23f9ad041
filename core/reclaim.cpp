#include "core/reclaim.h"

#include <algorithm>
#include <cstdint>

#include "core/sleep.h"

namespace cgphase {
namespace {

// Share of the reclaimable cache that is dropped per interval (docs/safety.md).
constexpr double kReclaimRatio = 0.01;
constexpr double kReclaimPressureRatio = 0.001;
constexpr double kLeastReclaim = 1 << 20;  // of an idle container

// Memory and io pressure are both quiet. Without PSI there is no reason to refuse, and the safety
// rules have already checked its substitutes.
bool quiet(const Sample& sample) {
  const auto calm = [](const PressureLine& line) {
    return line.avg10_ratio.value_or(0) < kReclaimPressureRatio &&
           line.avg60_ratio.value_or(0) < kReclaimPressureRatio;
  };
  return calm(sample.memory_pressure.some) && calm(sample.io_pressure.some);
}

Bytes whole_pages(double bytes) {
  return Bytes{static_cast<std::uint64_t>(bytes) / kPageBytes * kPageBytes};
}

double bytes_of(Counter counter) { return static_cast<double>(counter.value_or(0)); }

}  // namespace

bool has_swap(const Sample& sample, const HostCapacity& host) {
  const bool forbidden = sample.swap_max && sample.swap_max->bytes == Bytes{0};
  return host.swap.value > 0 && !forbidden;
}

std::optional<CacheReclaim> cache_in_way(const ContainerView& view) {
  if (view.mode != Mode::enforce || view.memory_blocked_by != Verdict::cache_in_way)
    return std::nullopt;
  const Bytes bytes = whole_pages(bytes_of(view.sample.memory.inactive_file_bytes) * kReclaimRatio);
  if (bytes.value == 0 || !quiet(view.sample)) return std::nullopt;
  return CacheReclaim{view.info.id, bytes};
}

std::optional<CacheReclaim> idle_memory(const ContainerView& view, const HostCapacity& host) {
  if (view.mode != Mode::enforce || view.inside || !view.info.hands_off.empty() ||
      !may_sleep(view.terms) || !quiet(view.sample))
    return std::nullopt;
  const MemoryStat& memory = view.sample.memory;
  double reclaimable = bytes_of(memory.inactive_file_bytes) + bytes_of(memory.active_file_bytes);
  const bool swap = view.sleep.swap_takes() && has_swap(view.sample, host);
  if (swap) reclaimable += bytes_of(memory.anon_bytes);
  const double least = std::min(kLeastReclaim, reclaimable);
  const Bytes bytes = whole_pages(std::max(reclaimable * kReclaimRatio, least));
  if (bytes.value == 0) return std::nullopt;
  return CacheReclaim{view.info.id, bytes, swap};
}

std::optional<CacheReclaim> reclaim_now(ContainerView& view, const Policy& policy,
                                        const NodeSample& tick, bool host_is_short) {
  if (auto cache = cache_in_way(view)) return cache;
  if (host_is_short || !view.sleep.idle(tick.time) || ends_soon(policy.forecast(kWakeAhead)))
    return std::nullopt;
  const auto memory = idle_memory(view, tick.host);
  if (memory) view.sleep.ask(memory->bytes, memory->swap);
  return memory;
}

}  // namespace cgphase
