#include "agent/outside_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/parse.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostBytes = 16 * 1024;
constexpr double kHalfLifeSeconds = 3600;
constexpr DecayingHistogram::Shape kCpuShape{0.01, kHalfLifeSeconds};
constexpr DecayingHistogram::Shape kMemoryShape{1e6, kHalfLifeSeconds};

}  // namespace

OutsideUse::OutsideUse(std::string cgroup_root, std::string proc_root)
    : cpu_stat_{std::move(cgroup_root) + "/cpu.stat", Fd()},
      meminfo_{std::move(proc_root) + "/meminfo", Fd()},
      cpu_cores_(kCpuShape),
      memory_bytes_(kMemoryShape) {}

std::optional<std::uint64_t> OutsideUse::number_of(HeldFile& file, std::string_view key) {
  if (!file.fd.valid()) file.fd = Fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.fd.valid()) return std::nullopt;
  std::array<char, kMostBytes> text;
  const ssize_t count = ::pread(file.fd.get(), text.data(), text.size(), 0);
  if (count <= 0 || static_cast<std::size_t>(count) == text.size()) {
    file.fd.reset();
    return std::nullopt;
  }
  std::string_view rest(text.data(), static_cast<std::size_t>(count)), line, word;
  while (next_line(rest, line))
    if (next_word(line, word) && word == key && next_word(line, word)) return parse_u64(word);
  return std::nullopt;
}

void OutsideUse::observe(const NodeSample& tick,
                         std::span<const ContainerView* const> containers) {
  observe_cpu(tick, containers);
  observe_memory(tick, containers);
  time_ = tick.time;
}

void OutsideUse::observe_cpu(const NodeSample& tick,
                             std::span<const ContainerView* const> containers) {
  const auto usage_usec = number_of(cpu_stat_, "usage_usec");
  const auto before = std::exchange(usage_usec_, usage_usec);
  const double seconds = std::chrono::duration<double>(tick.time - time_).count();
  if (!usage_usec || !before || *usage_usec < *before || !(seconds > 0)) return;
  double cores = static_cast<double>(*usage_usec - *before) / 1e6 / seconds;
  for (const ContainerView* view : containers)
    if (!view->inside) cores -= view->cpu_cores.value_or(0);
  cpu_cores_.add(std::max(cores, 0.0), seconds,
                 std::chrono::duration<double>(tick.time.time_since_epoch()).count());
}

// What cannot be had at once, whoever holds it, less the containers' need. What of that is swapped
// out is not in RAM.
void OutsideUse::observe_memory(const NodeSample& tick,
                                std::span<const ContainerView* const> containers) {
  constexpr double kKiB = 1024;
  const bool young = memory_time_ && tick.time >= *memory_time_ &&
                     tick.time - *memory_time_ < kMemoryPeriod;
  if (young) return;
  const auto available = number_of(meminfo_, "MemAvailable:");
  if (!available) return;
  memory_time_ = tick.time;
  double bytes =
      static_cast<double>(tick.host.memory.value) - static_cast<double>(*available) * kKiB;
  for (const ContainerView* view : containers) {
    if (view->inside || !view->memory_need) continue;
    const std::uint64_t need = view->memory_need->value;
    const std::uint64_t swapped = view->sample.swap_current.value_or(Bytes{}).value;
    bytes -= static_cast<double>(need - std::min(swapped, need));
  }
  memory_bytes_.add(std::max(bytes, 0.0), 1,
                    std::chrono::duration<double>(tick.time.time_since_epoch()).count());
}

}  // namespace cgphase
