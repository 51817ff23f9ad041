// Finds the positions of the lines of memory.stat in the kernel's raw numbers, which differ between
// kernels and configurations. No interface reports them, so they are calibrated: memory.stat is
// read before and after a walk. A line that did not change in between keeps only the positions with
// its value. Several positions may remain, because many numbers are always equal. If they differ
// later, the file is read instead, and the calibration continues.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collectors/cgroup_pull.h"
#include "collectors/sample.h"

namespace cgphase {

inline constexpr std::size_t kMemoryLineCount = 24;
static_assert(kMemoryLineCount <= PULL_MEMORY_LINES);
// As in memory.stat, in the order of memory_line_name().
using MemoryLineValues = std::array<Counter, kMemoryLineCount>;
std::string_view memory_line_name(std::size_t line);

MemoryLineValues scan_memory_lines(std::string_view memory_stat);

class MemoryLines {
 public:
  // Comparisons that must agree before a result is used.
  static constexpr int kNeededComparisons = 3;
  // After this many consecutive comparisons, earlier mismatches no longer count, because a mismatch
  // may be a coincidence.
  static constexpr int kForgivingComparisons = 60;
  // After this many mismatches the lines of this kernel are considered not findable.
  static constexpr int kMostMismatches = 8;

  // `raw` was taken between the two readings of the same cgroup. True if choice() changed.
  bool record(const MemoryLineValues& before, const MemoryLineValues& after,
              std::span<const std::uint64_t> raw);

  bool usable() const { return comparisons_ >= kNeededComparisons && !unsupported(); }
  bool unsupported() const { return mismatches_ >= kMostMismatches; }
  MemoryChoice choice() const { return {lines_, same_}; }

  // Converts a record of a walk with this choice. Absent after a mismatch, and before usable().
  std::optional<MemoryStat> decode(const pull_record& record) const;

 private:
  using Places = std::bitset<PULL_RAW>;
  bool narrow(std::size_t line, std::uint64_t value, std::span<const std::uint64_t> raw);
  bool handle_mismatch();
  void restart();
  bool choose();
  // For lines that do not count pages.
  Counter sum_of(const pull_record& record, std::span<const std::size_t> parts) const;

  std::array<Places, kMemoryLineCount> places_;
  std::array<bool, kMemoryLineCount> present_{};
  int comparisons_ = 0, mismatches_ = 0;
  std::vector<std::uint32_t> lines_, same_;
};

}  // namespace cgphase
