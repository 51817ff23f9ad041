// The text of each file that cgphase may write, to and from Limits, and the order in which several
// of them are written. Formats and bounds: Documentation/admin-guide/cgroup-v2.rst, cpu.max in
// kernel/sched/core.c (tg_set_cfs_bandwidth).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "cgroupfs/limits.h"

namespace cgphase {

inline constexpr std::array<Knob, kKnobCount> kKnobs = {
    Knob::cpu_max, Knob::cpu_max_burst, Knob::cpu_weight, Knob::memory_max, Knob::memory_high};

// Bounds of the kernel; a value outside is refused before it is written.
inline constexpr std::uint64_t kSmallestQuotaUsec = 1'000;
inline constexpr std::uint64_t kSmallestPeriodUsec = 1'000;
inline constexpr std::uint64_t kLargestPeriodUsec = 1'000'000;
inline constexpr std::uint64_t kLargestQuotaUsec = std::uint64_t{1} << 43;  // about 100 days
inline constexpr std::uint32_t kSmallestWeight = 1;
inline constexpr std::uint32_t kLargestWeight = 10'000;
inline constexpr std::uint64_t kLargestMemoryBytes = std::uint64_t{1} << 62;

// The value of one knob as text without the newline. Fixed size and trivially copyable, so that it
// can lie in a shared mapping and be handled where nothing may be allocated.
inline constexpr std::size_t kKnobTextBytes = 32;
class KnobText {
 public:
  KnobText() = default;
  // Absent when `text` does not fit (kKnobTextBytes - 1 characters do).
  static std::optional<KnobText> from(std::string_view text);
  std::string_view view() const;
  bool empty() const { return bytes_[0] == '\0'; }
  friend bool operator==(const KnobText&, const KnobText&) = default;

 private:
  std::array<char, kKnobTextBytes> bytes_{};  // padded with zeros
};

// Reads `text` (the first line counts) into the field of `knob`. Errors: invalid.
Status parse_knob(Knob knob, std::string_view text, Limits& limits);

// What to write for the field of `knob`; memory is rounded up to whole pages, as the kernel would
// otherwise round it down. Errors: not_found (the field is absent), invalid (out of bounds).
Result<KnobText> format_knob(Knob knob, const Limits& limits);

// parse_knob and format_knob in one: the text in its normal form. Nothing is allocated unless the
// text is malformed.
Result<KnobText> normal_text(Knob knob, std::string_view text);
// Whether both texts mean one limit to the kernel.
bool same_value(Knob knob, const KnobText& left, const KnobText& right);

// Whether the limit of `knob` in `after` is lower (less), higher (greater) or the same as in
// `before`. "max" is above every number; cpu.max is compared by its share of the period. An absent
// field compares as equal to everything.
std::strong_ordering compare_knob(Knob knob, const Limits& after, const Limits& before);

// Copies the field of `knob`.
void copy_knob(Knob knob, const Limits& from, Limits& to);

// The kernel takes no burst above the quota: what it takes of `burst` beside a cpu.max of `quota`.
// Absent where it takes all.
std::optional<KnobText> cut_to_quota(const KnobText& burst, const KnobText& quota);

// The knobs of one cgroup in the order in which they may be written, so that no moment between two
// writes is refused by the kernel or tighter than both ends: when the CPU limit rises cpu.max goes
// before cpu.max.burst, when it falls the other way round; memory.max before memory.high when
// memory rises, and the other way round.
std::array<Knob, kKnobCount> write_order(const Limits& before, const Limits& after);

// The first line of one file of a directory, at most kKnobFileBytes long. Nothing is allocated
// unless it fails. Errors: gone (the cgroup was removed), not_found (no such file here).
inline constexpr std::size_t kKnobFileBytes = 4096;
Result<KnobText> read_knob(int directory_fd, Knob knob);
// All limits of the directory; a missing file leaves its field empty. Errors: gone.
Result<Limits> read_limits(int directory_fd);

// One write on a descriptor of its own. Blocks as long as the kernel reclaims; a signal ends it
// (EINTR, io). Errors: gone, not_found, invalid (the kernel refused the value), denied.
Status write_knob(int directory_fd, Knob knob, const KnobText& text);

}  // namespace cgphase
