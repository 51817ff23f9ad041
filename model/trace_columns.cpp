#include "model/trace_columns.h"

namespace cgphase {
namespace {

// A field given as the path of members to it.
template <auto Group, auto Field>
constexpr TraceColumn counter(std::string_view name) {
  return {name, [](const Sample& sample) { return sample.*Group.*Field; },
          [](Sample& sample, std::uint64_t value) { sample.*Group.*Field = value; }};
}

template <auto Field>
constexpr TraceColumn bytes(std::string_view name) {
  return {name,
          [](const Sample& sample) -> Counter {
            const std::optional<Bytes>& field = sample.*Field;
            return field ? Counter(field->value) : std::nullopt;
          },
          [](Sample& sample, std::uint64_t value) { sample.*Field = Bytes{value}; }};
}

template <auto Group>
constexpr TraceColumn stall(std::string_view name) {
  return {name, [](const Sample& sample) { return (sample.*Group).some.total_usec; },
          [](Sample& sample, std::uint64_t value) { (sample.*Group).some.total_usec = value; }};
}

constexpr TraceColumn kColumns[] = {
    counter<&Sample::cpu, &CpuStat::usage_usec>("cpu.usage.usec"),
    counter<&Sample::cpu, &CpuStat::nr_periods>("cpu.nr_periods"),
    counter<&Sample::cpu, &CpuStat::nr_throttled>("cpu.nr_throttled"),
    counter<&Sample::cpu, &CpuStat::throttled_usec>("cpu.throttled.usec"),
    counter<&Sample::memory, &MemoryStat::anon_bytes>("memory.anon"),
    counter<&Sample::memory, &MemoryStat::file_bytes>("memory.file"),
    counter<&Sample::memory, &MemoryStat::shmem_bytes>("memory.shmem"),
    counter<&Sample::memory, &MemoryStat::kernel_bytes>("memory.kernel"),
    counter<&Sample::memory, &MemoryStat::unevictable_bytes>("memory.unevictable"),
    counter<&Sample::memory, &MemoryStat::slab_reclaimable_bytes>("memory.slab.reclaimable"),
    counter<&Sample::memory, &MemoryStat::inactive_file_bytes>("memory.inactive_file"),
    counter<&Sample::memory, &MemoryStat::pgfault>("memory.pgfault"),
    counter<&Sample::memory, &MemoryStat::pgmajfault>("memory.pgmajfault"),
    counter<&Sample::memory, &MemoryStat::workingset_refault_file>("memory.refault.file"),
    counter<&Sample::memory, &MemoryStat::workingset_refault_anon>("memory.refault.anon"),
    bytes<&Sample::swap_current>("memory.swap"),
    bytes<&Sample::memory_peak>("memory.peak"),
    counter<&Sample::memory_events, &MemoryEvents::high>("memory.events.high"),
    counter<&Sample::memory_events, &MemoryEvents::max>("memory.events.max"),
    counter<&Sample::memory_events, &MemoryEvents::oom>("memory.events.oom"),
    counter<&Sample::memory_events, &MemoryEvents::oom_kill>("memory.events.oom_kill"),
    counter<&Sample::io, &IoStat::read_bytes>("io.rbytes"),
    counter<&Sample::io, &IoStat::write_bytes>("io.wbytes"),
    stall<&Sample::cpu_pressure>("cpu.pressure.some.usec"),
    stall<&Sample::memory_pressure>("memory.pressure.some.usec"),
    stall<&Sample::io_pressure>("io.pressure.some.usec"),
    {"pids", [](const Sample& sample) { return sample.pids_current; },
     [](Sample& sample, std::uint64_t value) { sample.pids_current = value; }},
};

}  // namespace

std::span<const TraceColumn> trace_columns() { return kColumns; }

}  // namespace cgphase
