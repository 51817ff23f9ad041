// Where among the kernel's raw numbers the lines of memory.stat stand. No interface tells: their
// order differs between kernels and their configurations. So it is learned by seeing: memory.stat
// is read before and after a walk, and of a line that did not change meanwhile only the places
// remain that had its number. Of several, for many numbers are always zero, and some always equal,
// it does not matter which it is as long as all of them are the same; where they are not, the file
// is read instead, and teaches which it is.
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
// As memory.stat tells them, in the order of memory_line_name().
using MemoryLineValues = std::array<Counter, kMemoryLineCount>;
std::string_view memory_line_name(std::size_t line);

MemoryLineValues scan_memory_lines(std::string_view memory_stat);

class MemoryLines {
 public:
  // Readings that must agree before any is relied on.
  static constexpr int kFirstLessons = 3;
  // So many in a row make up for contradictions: one may come of bad luck.
  static constexpr int kForgivingLessons = 60;
  // Contradictions after which this kernel is one whose lines are not to be found.
  static constexpr int kMostContradictions = 8;

  // `raw` was taken between the two readings of the same cgroup. True when choice() is another.
  bool learn(const MemoryLineValues& before, const MemoryLineValues& after,
             std::span<const std::uint64_t> raw);

  bool usable() const { return lessons_ >= kFirstLessons && !hopeless(); }
  bool hopeless() const { return contradictions_ >= kMostContradictions; }
  MemoryChoice choice() const { return {lines_, same_}; }

  // Of a record of a walk that had this choice. Absent where it surprised, or before usable().
  std::optional<MemoryStat> decode(const pull_record& record) const;

 private:
  using Places = std::bitset<PULL_RAW>;
  bool narrow(std::size_t line, std::uint64_t value, std::span<const std::uint64_t> raw);
  bool contradict();
  void restart();
  bool choose();
  // Of lines that are no pages.
  Counter sum_of(const pull_record& record, std::span<const std::size_t> parts) const;

  std::array<Places, kMemoryLineCount> places_;
  std::array<bool, kMemoryLineCount> present_{};
  int lessons_ = 0, contradictions_ = 0;
  std::vector<std::uint32_t> lines_, same_;
};

}  // namespace cgphase
