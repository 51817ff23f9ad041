#include "agent/observers/outside_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cgroupfs/kernel_text.h"
#include "collectors/host_facts.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostBytes = 16 * 1024;
constexpr double kHalfLifeSeconds = 3600;
constexpr DecayingHistogram::Shape kCpuShape{0.01, kHalfLifeSeconds};
constexpr DecayingHistogram::Shape kMemoryShape{1e6, kHalfLifeSeconds};

}  // namespace

OutsideUse::OutsideUse(std::string cgroup_root, std::string proc_root)
    : cpu_stat_{cgroup_root + "/cpu.stat", Fd()},
      memory_current_{cgroup_root + "/memory.current", Fd()},
      memory_stat_{cgroup_root + "/memory.stat", Fd()},
      meminfo_{std::move(proc_root) + "/meminfo", Fd()},
      cpu_cores_(kCpuShape),
      memory_bytes_(kMemoryShape) {}

std::string_view OutsideUse::text_of(OpenFile& file, std::span<char> buffer) {
  if (!file.fd.valid()) file.fd = Fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.fd.valid()) return {};
  const ssize_t count = ::pread(file.fd.get(), buffer.data(), buffer.size(), 0);
  if (count <= 0 || static_cast<std::size_t>(count) == buffer.size()) {
    file.fd.reset();
    return {};
  }
  return {buffer.data(), static_cast<std::size_t>(count)};
}

// The root of a cgroup namespace has memory files for all processes in it. The root of a host has
// no such files.
std::optional<Bytes> OutsideUse::need_in_namespace() {
  std::array<char, kMostBytes> text;
  Sample sample;
  const Counter current = scan_amount(text_of(memory_current_, text));
  if (!current) return std::nullopt;
  sample.memory_current = Bytes{*current};
  sample.memory = scan_memory_stat(text_of(memory_stat_, text));
  return memory_need(sample);
}

void OutsideUse::observe(const NodeSample& tick,
                         std::span<const ContainerView* const> containers) {
  observe_cpu(tick, containers);
  observe_memory(tick, containers);
  time_ = tick.time;
  host_ = tick.host;
}

void OutsideUse::observe_cpu(const NodeSample& tick,
                             std::span<const ContainerView* const> containers) {
  std::array<char, kMostBytes> text;
  const Counter usage_usec = scan_cpu_stat(text_of(cpu_stat_, text)).usage_usec;
  const auto before = std::exchange(usage_usec_, usage_usec);
  const double seconds = std::chrono::duration<double>(tick.time - time_).count();
  if (!usage_usec || !before || *usage_usec < *before || !(seconds > 0)) return;
  double cores = static_cast<double>(*usage_usec - *before) / 1e6 / seconds;
  // The file is not read exactly at the time of the tick, so the result may exceed the host.
  if (tick.host.cpu_cores > 0) cores = std::min(cores, tick.host.cpu_cores);
  for (const ContainerView* view : containers)
    if (!view->inside) cores -= view->cpu_cores.value_or(0);
  cpu_cores_.add(std::max(cores, 0.0), seconds,
                 std::chrono::duration<double>(tick.time.time_since_epoch()).count());
}

// Memory that is not available, minus the containers' need. Swapped need is not in RAM, so it is
// not subtracted.
void OutsideUse::observe_memory(const NodeSample& tick,
                                std::span<const ContainerView* const> containers) {
  const bool young = memory_time_ && tick.time >= *memory_time_ &&
                     tick.time - *memory_time_ < kMemoryPeriod;
  if (young) return;
  std::array<char, kMostBytes> text;
  const auto available = meminfo_bytes(text_of(meminfo_, text), "MemAvailable:");
  if (!available) return;
  memory_time_ = tick.time;
  double bytes =
      static_cast<double>(tick.host.memory.value) - static_cast<double>(available->value);
  if (const auto need = need_in_namespace())
    bytes = std::max(bytes, static_cast<double>(need->value));
  for (const ContainerView* view : containers) {
    if (view->inside || !view->memory_need) continue;
    const std::uint64_t need = view->memory_need->value;
    const std::uint64_t swapped = view->sample.swap_current.value_or(Bytes{}).value;
    bytes -= static_cast<double>(need - std::min(swapped, need));
  }
  memory_now_bytes_ = std::max(bytes, 0.0);
  memory_bytes_.add(*memory_now_bytes_, 1,
                    std::chrono::duration<double>(tick.time.time_since_epoch()).count());
}

}  // namespace cgphase
