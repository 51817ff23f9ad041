#include "core/reclaim.h"

#include <cstdint>

namespace cgphase {
namespace {

// Share of the reclaimable cache that is dropped per interval (docs/safety.md).
constexpr double kReclaimRatio = 0.01;
constexpr double kReclaimPressureRatio = 0.001;

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

}  // namespace

std::optional<CacheReclaim> cache_in_way(const ContainerView& view) {
  if (view.mode != Mode::enforce || view.memory_blocked_by != Verdict::cache_in_way)
    return std::nullopt;
  const Counter inactive = view.sample.memory.inactive_file_bytes;
  const Bytes bytes =
      whole_pages(static_cast<double>(inactive.value_or(0)) * kReclaimRatio);
  if (bytes.value == 0 || !quiet(view.sample)) return std::nullopt;
  return CacheReclaim{view.info.id, bytes};
}

}  // namespace cgphase
