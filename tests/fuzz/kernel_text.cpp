// The parsers of kernel files. No number without its end is read, and none is negative. Need is
// between the explained part and the largest possible sum. A limit that was read is written back
// unchanged. The first byte says where the text is cut.
#include "cgroupfs/kernel_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cgroupfs/cgroup_stats.h"
#include "cgroupfs/knob_file.h"

using namespace cgphase;

namespace {

constexpr std::uint64_t kNegativeFrom = std::uint64_t{1} << 63;

bool sound(const Counter& number) { return !number || *number < kNegativeFrom; }

void check_cut(std::string_view text, std::string_view part) {
  // A number read from the part must equal that of the whole text.
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

void check_need(const MemoryStat& memory, Bytes current) {
  const auto need = memory_need(memory, current, {});
  const auto explained = explained_memory_need(memory, current);
  CHECK_INVARIANT(need.has_value() == explained.has_value());
  if (!need) return;
  CHECK_INVARIANT(*need >= *explained);
  CHECK_INVARIANT(need->value <= std::max(explained->value, current.value));
  CHECK_INVARIANT(*memory_need(memory, current, current) >= *need);
}

// A value read from a file that cgphase writes is what it would write, within the kernel's bounds.
void check_knobs(std::string_view text) {
  for (const Knob knob : kKnobs) {
    Limits limits;
    if (!parse_knob(knob, text, limits)) continue;
    const auto written = format_knob(knob, limits);
    if (!written) continue;  // out of bounds
    Limits again;
    CHECK_INVARIANT(parse_knob(knob, written->view(), again).has_value());
    CHECK_INVARIANT(format_knob(knob, again) == *written);
    CHECK_INVARIANT(compare_knob(knob, again, limits) >= 0);  // memory is rounded up to a page
  }
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
    check_need(memory, Bytes{current});
  check_knobs(text);
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
