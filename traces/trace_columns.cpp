#include "traces/trace_columns.h"

#include <algorithm>

#include "traces/trace_bounds.h"

namespace cgphase {
namespace {

using Q = Quantity;

constexpr double kMostStall = 1.01, kMostGpus = 1024;

// A column for the field that the two member pointers name.
template <auto Group, auto Field>
constexpr TraceColumn field(std::string_view name, Quantity quantity) {
  return {name, quantity, [](const Sample& sample) { return sample.*Group.*Field; },
          [](Sample& sample, std::uint64_t value) { sample.*Group.*Field = value; }};
}

template <auto Field>
constexpr TraceColumn bytes(std::string_view name, Quantity quantity) {
  return {name, quantity,
          [](const Sample& sample) -> Counter {
            const std::optional<Bytes>& field = sample.*Field;
            return field ? Counter(field->value) : std::nullopt;
          },
          [](Sample& sample, std::uint64_t value) { sample.*Field = Bytes{value}; }};
}

template <auto Group, auto Line = &Pressure::some>
constexpr TraceColumn stall(std::string_view name) {
  return {name, Q::wall_time,
          [](const Sample& sample) { return (sample.*Group.*Line).total_usec; },
          [](Sample& sample, std::uint64_t value) { (sample.*Group.*Line).total_usec = value; }};
}

template <auto Group, auto Line, auto Average>
constexpr TraceRatio mean_stall(std::string_view name) {
  return {name, kMostStall, [](const Sample& sample) { return sample.*Group.*Line.*Average; },
          [](Sample& sample, double value) { sample.*Group.*Line.*Average = value; }};
}

template <auto Group, auto Field>
constexpr TraceRatio ratio(std::string_view name) {
  return {name, kMostGpus, [](const Sample& sample) { return sample.*Group.*Field; },
          [](Sample& sample, double value) { sample.*Group.*Field = value; }};
}

template <auto Field>
constexpr TraceColumn state(std::string_view name) {
  return {name, Q::flag,
          [](const Sample& sample) -> Counter {
            const std::optional<bool> is = sample.*Field;
            return is ? Counter(*is ? 1 : 0) : std::nullopt;
          },
          [](Sample& sample, std::uint64_t value) { sample.*Field = value != 0; }};
}

template <auto Field>
constexpr TraceColumn count(std::string_view name) {
  return {name, Q::tasks, [](const Sample& sample) { return sample.*Field; },
          [](Sample& sample, std::uint64_t value) { sample.*Field = value; }};
}

constexpr TraceColumn kColumns[] = {
    field<&Sample::cpu, &CpuStat::usage_usec>("cpu.usage.usec", Q::cpu_time),
    field<&Sample::cpu, &CpuStat::nr_periods>("cpu.nr_periods", Q::events),
    field<&Sample::cpu, &CpuStat::nr_throttled>("cpu.nr_throttled", Q::events),
    field<&Sample::cpu, &CpuStat::throttled_usec>("cpu.throttled.usec", Q::cpu_time),
    field<&Sample::memory, &MemoryStat::anon_bytes>("memory.anon", Q::memory),
    field<&Sample::memory, &MemoryStat::file_bytes>("memory.file", Q::memory),
    field<&Sample::memory, &MemoryStat::shmem_bytes>("memory.shmem", Q::memory),
    field<&Sample::memory, &MemoryStat::kernel_bytes>("memory.kernel", Q::memory),
    field<&Sample::memory, &MemoryStat::unevictable_bytes>("memory.unevictable", Q::memory),
    field<&Sample::memory, &MemoryStat::slab_reclaimable_bytes>(
        "memory.slab.reclaimable", Q::memory),
    field<&Sample::memory, &MemoryStat::inactive_file_bytes>("memory.inactive_file", Q::memory),
    field<&Sample::memory, &MemoryStat::pgfault>("memory.pgfault", Q::events),
    field<&Sample::memory, &MemoryStat::pgmajfault>("memory.pgmajfault", Q::events),
    field<&Sample::memory, &MemoryStat::workingset_refault_file>("memory.refault.file", Q::events),
    field<&Sample::memory, &MemoryStat::workingset_refault_anon>("memory.refault.anon", Q::events),
    bytes<&Sample::swap_current>("memory.swap", Q::other_bytes),
    bytes<&Sample::memory_peak>("memory.peak", Q::memory),
    field<&Sample::memory_events, &MemoryEvents::high>("memory.events.high", Q::events),
    field<&Sample::memory_events, &MemoryEvents::max>("memory.events.max", Q::events),
    field<&Sample::memory_events, &MemoryEvents::oom>("memory.events.oom", Q::events),
    field<&Sample::memory_events, &MemoryEvents::oom_kill>("memory.events.oom_kill", Q::events),
    field<&Sample::io, &IoStat::read_bytes>("io.rbytes", Q::traffic),
    field<&Sample::io, &IoStat::write_bytes>("io.wbytes", Q::traffic),
    stall<&Sample::cpu_pressure>("cpu.pressure.some.usec"),
    stall<&Sample::memory_pressure>("memory.pressure.some.usec"),
    stall<&Sample::io_pressure>("io.pressure.some.usec"),
    count<&Sample::pids_current>("pids"),
    field<&Sample::cpu, &CpuStat::user_usec>("cpu.user.usec", Q::cpu_time),
    field<&Sample::cpu, &CpuStat::system_usec>("cpu.system.usec", Q::cpu_time),
    field<&Sample::memory, &MemoryStat::slab_unreclaimable_bytes>(
        "memory.slab.unreclaimable", Q::memory),
    field<&Sample::memory, &MemoryStat::sock_bytes>("memory.sock", Q::memory),
    field<&Sample::memory, &MemoryStat::active_file_bytes>("memory.active_file", Q::memory),
    field<&Sample::memory, &MemoryStat::inactive_anon_bytes>("memory.inactive_anon", Q::memory),
    field<&Sample::memory, &MemoryStat::pgscan>("memory.pgscan", Q::events),
    field<&Sample::memory, &MemoryStat::pgsteal>("memory.pgsteal", Q::events),
    field<&Sample::memory, &MemoryStat::pgscan_direct>("memory.pgscan.direct", Q::events),
    field<&Sample::memory_events, &MemoryEvents::low>("memory.events.low", Q::events),
    field<&Sample::io, &IoStat::read_ios>("io.rios", Q::events),
    field<&Sample::io, &IoStat::write_ios>("io.wios", Q::events),
    stall<&Sample::cpu_pressure, &Pressure::full>("cpu.pressure.full.usec"),
    stall<&Sample::memory_pressure, &Pressure::full>("memory.pressure.full.usec"),
    stall<&Sample::io_pressure, &Pressure::full>("io.pressure.full.usec"),
    state<&Sample::populated>("cgroup.populated"),
    state<&Sample::frozen>("cgroup.frozen"),
    field<&Sample::run_queue, &RunQueueStat::wait_usec>("run_queue.wait.usec", Q::events),
    field<&Sample::run_queue, &RunQueueStat::waits>("run_queue.waits", Q::events),
    field<&Sample::run_queue, &RunQueueStat::longest_wait_usec>(
        "run_queue.longest.usec", Q::other_bytes),
    field<&Sample::run_queue, &RunQueueStat::voluntary_switches>("switches.voluntary", Q::events),
    field<&Sample::run_queue, &RunQueueStat::involuntary_switches>(
        "switches.involuntary", Q::events),
    field<&Sample::network, &NetworkStat::receive_bytes>("net.rx.bytes", Q::traffic),
    field<&Sample::network, &NetworkStat::receive_packets>("net.rx.packets", Q::events),
    field<&Sample::network, &NetworkStat::transmit_bytes>("net.tx.bytes", Q::traffic),
    field<&Sample::network, &NetworkStat::transmit_packets>("net.tx.packets", Q::events),
    field<&Sample::network, &NetworkStat::tcp_retransmits>("net.tcp.retransmits", Q::events),
    field<&Sample::block, &BlockStat::bytes>("block.bytes", Q::traffic),
    field<&Sample::block, &BlockStat::requests>("block.requests", Q::events),
    field<&Sample::block, &BlockStat::latency_usec>("block.latency.usec", Q::events),
    field<&Sample::memory, &MemoryStat::hugetlb_bytes>("memory.hugetlb", Q::memory),
    {"gpu.memory", Q::other_bytes,
     [](const Sample& sample) -> Counter {
       return sample.gpu.memory_bytes ? Counter(sample.gpu.memory_bytes->value) : std::nullopt;
     },
     [](Sample& sample, std::uint64_t value) { sample.gpu.memory_bytes = Bytes{value}; }},
};

constexpr auto kSome = &Pressure::some, kFull = &Pressure::full;
constexpr auto k10 = &PressureLine::avg10_ratio, k60 = &PressureLine::avg60_ratio;
constexpr TraceRatio kRatios[] = {
    mean_stall<&Sample::cpu_pressure, kSome, k10>("cpu.pressure.some.avg10"),
    mean_stall<&Sample::cpu_pressure, kSome, k60>("cpu.pressure.some.avg60"),
    mean_stall<&Sample::cpu_pressure, kFull, k10>("cpu.pressure.full.avg10"),
    mean_stall<&Sample::cpu_pressure, kFull, k60>("cpu.pressure.full.avg60"),
    mean_stall<&Sample::memory_pressure, kSome, k10>("memory.pressure.some.avg10"),
    mean_stall<&Sample::memory_pressure, kSome, k60>("memory.pressure.some.avg60"),
    mean_stall<&Sample::memory_pressure, kFull, k10>("memory.pressure.full.avg10"),
    mean_stall<&Sample::memory_pressure, kFull, k60>("memory.pressure.full.avg60"),
    mean_stall<&Sample::io_pressure, kSome, k10>("io.pressure.some.avg10"),
    mean_stall<&Sample::io_pressure, kSome, k60>("io.pressure.some.avg60"),
    mean_stall<&Sample::io_pressure, kFull, k10>("io.pressure.full.avg10"),
    mean_stall<&Sample::io_pressure, kFull, k60>("io.pressure.full.avg60"),
    ratio<&Sample::gpu, &GpuStat::utilisation_ratio>("gpu.utilisation"),
    ratio<&Sample::gpu, &GpuStat::memory_utilisation_ratio>("gpu.memory.utilisation"),
};

// A column of another tool that is read if the file lacks ours.
struct Fallback {
  std::string_view name;  // our column
  TraceColumn column;
};
constexpr Fallback kFallbacks[] = {
    {"io.rbytes", field<&Sample::io, &IoStat::read_bytes>("io.rchar", Q::traffic)},
    {"io.wbytes", field<&Sample::io, &IoStat::write_bytes>("io.wchar", Q::traffic)},
    {"pids", count<&Sample::pids_current>("threads")},
};

}  // namespace

std::uint64_t largest(Quantity quantity) {
  constexpr std::uint64_t kMostCounted = 9'200'000'000'000'000'000U;  // exact as a double
  switch (quantity) {
    case Q::memory:
    case Q::other_bytes: return static_cast<std::uint64_t>(kMostMemoryBytes);
    case Q::tasks: return static_cast<std::uint64_t>(kMostTasks);
    default: return kMostCounted;
  }
}

std::span<const TraceColumn> trace_columns() { return kColumns; }
std::span<const TraceRatio> trace_ratios() { return kRatios; }

std::vector<const TraceColumn*> columns_to_read(std::span<const std::string> names) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  std::vector<const TraceColumn*> columns;
  for (const TraceColumn& column : kColumns)
    if (has(column.name)) columns.push_back(&column);
  for (const auto& [name, column] : kFallbacks)
    if (!has(name) && has(column.name)) columns.push_back(&column);
  return columns;
}

}  // namespace cgphase
