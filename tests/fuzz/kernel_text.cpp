// The scanners of kernel files: no number is read of which the end is missing, none is negative,
// and need lies between what is explained and what no sum can pass. The first byte cuts the text.
#include "cgroupfs/kernel_text.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"

using namespace cgphase;

namespace {

constexpr std::uint64_t kNegativeFrom = std::uint64_t{1} << 63;

bool sound(const Counter& number) { return !number || *number < kNegativeFrom; }

void check_cut(std::string_view text, std::string_view part) {
  // A number of the part is that of the whole text.
  const auto same = [](const Counter& of_part, const Counter& of_text) {
    return !of_part || of_part == of_text;
  };
  const CpuStat part_cpu = scan_cpu_stat(part), cpu = scan_cpu_stat(text);
  CHECK_INVARIANT(same(part_cpu.usage_usec, cpu.usage_usec));
  CHECK_INVARIANT(same(part_cpu.throttled_usec, cpu.throttled_usec));
  const MemoryStat part_memory = scan_memory_stat(part), memory = scan_memory_stat(text);
  CHECK_INVARIANT(same(part_memory.anon_bytes, memory.anon_bytes));
  CHECK_INVARIANT(same(part_memory.inactive_file_bytes, memory.inactive_file_bytes));
  CHECK_INVARIANT(same(scan_memory_events(part).oom_kill, scan_memory_events(text).oom_kill));
  if (!part.ends_with('\n')) {
    CHECK_INVARIANT(!scan_number(part));
    CHECK_INVARIANT(!scan_limit(part));
    CHECK_INVARIANT(!scan_cpu_max(part));
  }
}

void check_need(const MemoryStat& memory, std::uint64_t current) {
  Sample sample;
  sample.memory = memory;
  sample.memory_current = Bytes{current};
  const auto need = memory_need(sample), explained = explained_memory_need(sample);
  CHECK_INVARIANT(need.has_value() == explained.has_value());
  if (!need) return;
  CHECK_INVARIANT(*need >= *explained);
  CHECK_INVARIANT(need->value <= std::max(explained->value, current));
  sample.swap_current = Bytes{current};
  CHECK_INVARIANT(*memory_need(sample) >= *need);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  check_cut(text, text.substr(0, std::min<std::size_t>(bytes[0], text.size())));
  const MemoryStat memory = scan_memory_stat(text);
  for (const Counter& number : {memory.anon_bytes, memory.file_bytes, memory.hugetlb_bytes,
                                memory.slab_reclaimable_bytes, memory.pgfault})
    CHECK_INVARIANT(sound(number));
  for (const std::uint64_t current : {std::uint64_t{0}, kPageBytes * bytes[0], kNegativeFrom})
    check_need(memory, current);
  const IoStat io = scan_io_stat(text);
  for (const Counter& sum : {io.read_bytes, io.write_bytes, io.read_ios, io.write_ios})
    CHECK_INVARIANT(sound(sum));
  const Pressure pressure = scan_pressure(text);
  for (const PressureLine& line : {pressure.some, pressure.full}) {
    CHECK_INVARIANT(!line.avg10_ratio || (*line.avg10_ratio >= 0 && *line.avg10_ratio <= 1));
    CHECK_INVARIANT(sound(line.total_usec));
  }
  (void)scan_cgroup_events(text);
  return 0;
}
