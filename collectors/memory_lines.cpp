#include "collectors/memory_lines.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "cgroupfs/kernel_text.h"

namespace cgphase {
namespace {

struct MemoryLine {
  std::string_view name;
  bool pages;
  Counter MemoryStat::*field;  // null: a part of a sum
};
constexpr std::array<MemoryLine, kMemoryLineCount> kMemoryLines = {{
    {"anon", true, &MemoryStat::anon_bytes},
    {"file", true, &MemoryStat::file_bytes},
    {"shmem", true, &MemoryStat::shmem_bytes},
    {"unevictable", true, &MemoryStat::unevictable_bytes},
    {"kernel", true, &MemoryStat::kernel_bytes},
    {"sock", true, &MemoryStat::sock_bytes},
    {"slab_reclaimable", false, &MemoryStat::slab_reclaimable_bytes},
    {"slab_unreclaimable", false, &MemoryStat::slab_unreclaimable_bytes},
    {"inactive_file", true, &MemoryStat::inactive_file_bytes},
    {"active_file", true, &MemoryStat::active_file_bytes},
    {"inactive_anon", true, &MemoryStat::inactive_anon_bytes},
    {"pgfault", false, &MemoryStat::pgfault},
    {"pgmajfault", false, &MemoryStat::pgmajfault},
    {"workingset_refault_file", false, &MemoryStat::workingset_refault_file},
    {"workingset_refault_anon", false, &MemoryStat::workingset_refault_anon},
    {"pgscan_direct", false, &MemoryStat::pgscan_direct},
    {"pgscan_kswapd", false, nullptr},
    {"pgscan_khugepaged", false, nullptr},
    {"pgscan_proactive", false, nullptr},
    {"pgsteal_direct", false, nullptr},
    {"pgsteal_kswapd", false, nullptr},
    {"pgsteal_khugepaged", false, nullptr},
    {"pgsteal_proactive", false, nullptr},
    {"hugetlb", true, &MemoryStat::hugetlb_bytes},
}};
// The lines of the sums in memory.stat.
constexpr std::size_t kScanParts[] = {15, 16, 17, 18};
constexpr std::size_t kStealParts[] = {19, 20, 21, 22};

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t unit_of(std::size_t line) { return kMemoryLines[line].pages ? page_bytes() : 1; }

// The sum of a gauge may be below zero while processors lag behind. The file then has zero.
std::uint64_t not_below_zero(std::uint64_t raw) {
  return static_cast<std::int64_t>(raw) < 0 ? 0 : raw;
}

}  // namespace

std::string_view memory_line_name(std::size_t line) { return kMemoryLines[line].name; }

MemoryLineValues scan_memory_lines(std::string_view memory_stat) {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kMemoryLineCount> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMemoryLines[i].name;
    return names;
  }();
  MemoryLineValues values;
  scan_flat_keyed(memory_stat, kNames, values);
  return values;
}

bool MemoryLines::handle_mismatch() {
  ++mismatches_;
  restart();
  return choose();
}

void MemoryLines::restart() {
  comparisons_ = 0;
  for (Places& places : places_) places.set();
}

bool MemoryLines::narrow(std::size_t line, std::uint64_t value,
                         std::span<const std::uint64_t> raw) {
  for (std::size_t i = 0; i < PULL_RAW; ++i)
    if (not_below_zero(raw[i]) != value / unit_of(line)) places_[line].reset(i);
  return places_[line].any() && value % unit_of(line) == 0;
}

bool MemoryLines::record(const MemoryLineValues& before, const MemoryLineValues& after,
                         std::span<const std::uint64_t> raw) {
  if (unsupported() || raw.size() != PULL_RAW) return false;
  if (comparisons_ == 0) restart();
  for (std::size_t line = 0; line < kMemoryLineCount; ++line) {
    const bool present = before[line] && after[line];
    if (comparisons_ > 0 && present != present_[line]) return handle_mismatch();
    present_[line] = present;
    if (present && before[line] == after[line] && !narrow(line, *before[line], raw))
      return handle_mismatch();
  }
  if (++comparisons_ >= kForgivingComparisons) mismatches_ = 0;
  return choose();
}

// The numbers at all positions of one line must be equal, and those of lines that share a position.
bool MemoryLines::choose() {
  std::vector<std::uint32_t> lines(kMemoryLineCount, 0), same(PULL_RAW);
  std::iota(same.begin(), same.end(), 0U);
  for (std::size_t line = 0; line < kMemoryLineCount; ++line) {
    if (!present_[line] || places_[line].none()) continue;
    lines[line] = static_cast<std::uint32_t>(places_[line]._Find_first());
    const std::uint32_t first = same[lines[line]];
    for (std::uint32_t i = 0; i < PULL_RAW; ++i)
      if (places_[line][i] && same[i] != first)
        std::ranges::replace(same, std::uint32_t{same[i]}, first);
  }
  const bool other = lines != lines_ || same != same_;
  lines_ = std::move(lines);
  same_ = std::move(same);
  return other;
}

Counter MemoryLines::sum_of(const pull_record& record, std::span<const std::size_t> parts) const {
  std::uint64_t sum = 0;
  bool any = false;
  for (const std::size_t part : parts) {
    if (!present_[part]) continue;
    sum += not_below_zero(record.memory[part]);
    any = true;
  }
  return any ? Counter(sum) : std::nullopt;
}

std::optional<MemoryStat> MemoryLines::decode(const pull_record& record) const {
  constexpr std::size_t kAnon = 0, kKernel = 4;
  const std::uint64_t page = page_bytes();
  if (!usable() || (record.parts & PULL_MISMATCH) != 0 || !present_[kAnon] || !present_[kKernel])
    return std::nullopt;
  std::optional<MemoryStat> decoded(std::in_place);
  MemoryStat& stat = *decoded;
  // Without a loop, because the compiler then knows each offset.
  [&]<std::size_t... line>(std::index_sequence<line...>) {
    const auto put = [&]<std::size_t at>() {
      constexpr MemoryLine kLine = kMemoryLines[at];
      if constexpr (kLine.field != nullptr)
        if (present_[at])
          stat.*kLine.field = not_below_zero(record.memory[at]) * (kLine.pages ? page : 1);
    };
    (put.template operator()<line>(), ...);
  }(std::make_index_sequence<kMemoryLineCount>{});
  // As in scan_memory_stat().
  stat.kernel_bytes = *stat.kernel_bytes + stat.sock_bytes.value_or(0);
  stat.pgscan = sum_of(record, kScanParts);
  stat.pgsteal = sum_of(record, kStealParts);
  return decoded;
}

}  // namespace cgphase
