#include "policy/safety/known_sources.h"

namespace cgphase {
namespace {

// Without a branch per value, because this runs in every tick.
bool has_any(const auto&... found) {
  return (static_cast<unsigned>(found.has_value()) | ...) != 0;
}

bool reported(const Pressure& pressure) {
  return has_any(pressure.some.avg10_ratio, pressure.some.total_usec);
}

// The sources that the safety rules use. The sampler reads some files less often than it ticks, but
// each sample contains their last values. A file that cannot be read is absent from then on.
std::uint32_t sources_of(const Sample& sample) {
  const bool has[] = {
      sample.cpu.usage_usec.has_value(),  // cpu.stat; with the cpu controller also the next line
      has_any(sample.cpu.nr_throttled, sample.cpu.throttled_usec),
      sample.memory_current.has_value(),
      sample.memory.anon_bytes.has_value(),  // memory.stat
      has_any(sample.memory_events.max, sample.memory_events.oom, sample.memory_events.oom_kill),
      sample.swap_current.has_value(),
      has_any(sample.populated, sample.frozen),  // cgroup.events
      reported(sample.cpu_pressure),
      reported(sample.memory_pressure),
      reported(sample.io_pressure),
      sample.limits.cpu_max.has_value(),
      sample.limits.cpu_max_burst.has_value(),
      sample.limits.memory_max.has_value(),
      sample.limits.memory_high.has_value(),
  };
  std::uint32_t sources = 0;
  for (const bool one : has) sources = sources << 1 | static_cast<std::uint32_t>(one);
  return sources;
}

}  // namespace

bool KnownSources::lost(const Sample& sample) {
  const std::uint32_t now = sources_of(sample);
  const bool lost = (known_ & ~now) != 0;
  known_ |= now;
  return lost;
}

}  // namespace cgphase
