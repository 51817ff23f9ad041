// Converts the text of each file that cgphase may write to and from Limits, and defines the order
// of several writes. Formats and bounds: Documentation/admin-guide/cgroup-v2.rst; for cpu.max
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
    Knob::cpu_max,    Knob::cpu_max_burst, Knob::cpu_weight,
    Knob::memory_max, Knob::memory_high,   Knob::cgroup_freeze};

// Bounds of the kernel. A value outside them is rejected before the write.
inline constexpr std::uint64_t kSmallestQuotaUsec = 1'000;
inline constexpr std::uint64_t kSmallestPeriodUsec = 1'000;
inline constexpr std::uint64_t kLargestPeriodUsec = 1'000'000;
inline constexpr std::uint64_t kLargestQuotaUsec = std::uint64_t{1} << 43;  // about 100 days
inline constexpr std::uint64_t kLargestMemoryBytes = std::uint64_t{1} << 62;

// The value of one knob as text without the newline. It has a fixed size and is trivially copyable.
// So it can be in a shared mapping, and code that must not allocate can use it.
inline constexpr std::size_t kKnobTextBytes = 32;
class KnobText {
 public:
  KnobText() = default;
  // Absent if `text` does not fit; kKnobTextBytes - 1 characters do.
  static std::optional<KnobText> from(std::string_view text);
  std::string_view view() const;
  bool empty() const { return bytes_[0] == '\0'; }
  friend bool operator==(const KnobText&, const KnobText&) = default;

 private:
  std::array<char, kKnobTextBytes> bytes_{};  // padded with zeros
};

// Parses the first line of `text` into the field of `knob`. Errors: invalid.
Status parse_knob(Knob knob, std::string_view text, Limits& limits);

// The text to write for the field of `knob`. Memory is rounded up to whole pages because the kernel
// would round it down. Errors: not_found (the field is absent), invalid (out of bounds).
Result<KnobText> format_knob(Knob knob, const Limits& limits);

// Brings the text to its normal form: parse_knob(), then format_knob(). Memory is allocated only if
// the text is malformed.
Result<KnobText> normal_text(Knob knob, std::string_view text);
// Whether both texts mean the same limit to the kernel.
bool same_value(Knob knob, const KnobText& left, const KnobText& right);

// Whether the limit of `knob` in `after` is lower (less), higher (greater) or the same as in
// `before`. "max" is above every number. cpu.max is compared by quota / period. An absent field is
// equal to everything. Frozen is lower than running.
std::strong_ordering compare_knob(Knob knob, const Limits& after, const Limits& before);

void copy_knob(Knob knob, const Limits& from, Limits& to);

// The kernel does not accept a burst above the quota. Returns the part of `burst` that it accepts
// with a cpu.max of `quota`. Absent if it accepts all of it.
std::optional<KnobText> cut_to_quota(const KnobText& burst, const KnobText& quota);

// The knobs of one cgroup in the order in which they must be written. In this order the kernel
// rejects no write, and between two writes the limits are never tighter than both ends. If the CPU
// limit rises, cpu.max is written before cpu.max.burst; if it falls, after it. If memory rises,
// memory.max is written before memory.high; if it falls, after it.
std::array<Knob, kKnobCount> write_order(const Limits& before, const Limits& after);

// The first line of one file of a directory, at most kKnobFileBytes long. Memory is allocated only
// for errors. Errors: gone (the cgroup was removed), not_found (no such file here).
inline constexpr std::size_t kKnobFileBytes = 4096;
Result<KnobText> read_knob(int directory_fd, Knob knob);
// All limits of the directory; a missing file leaves its field empty. Errors: gone.
Result<Limits> read_limits(int directory_fd);

// Writes once, through its own descriptor. The write blocks while the kernel reclaims; a signal
// ends it (EINTR, io). Errors: gone, not_found, invalid (the kernel rejected the value), denied.
Status write_knob(int directory_fd, Knob knob, const KnobText& text);
// The same through an open file. Allocates nothing. If it is false, errno is set.
bool write_open_knob(int fd, const KnobText& text);

}  // namespace cgphase
