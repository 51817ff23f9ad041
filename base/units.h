// Types for units that must not be mixed up when a limit is written.
#pragma once

#include <compare>
#include <cstdint>

namespace cgphase {

struct Bytes {
  std::uint64_t value = 0;
  friend auto operator<=>(const Bytes&, const Bytes&) = default;
};

struct Microseconds {
  std::uint64_t value = 0;
  friend auto operator<=>(const Microseconds&, const Microseconds&) = default;
};

// One core is one second of CPU time per second.
struct Cores {
  double value = 0;
  friend auto operator<=>(const Cores&, const Cores&) = default;
};

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kPageBytes = 4096;

}  // namespace cgphase
