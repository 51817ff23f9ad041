// Numbers as few bytes (LEB128), and the reading of them from foreign bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cgphase {

inline constexpr std::size_t kLargestVarint = 10;

// At most kLargestVarint bytes; where they end.
inline char* encode_varint(char* to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

// Signed numbers near zero become small ones: 0, -1, 1, -2, ... are 0, 1, 2, 3.
constexpr std::uint64_t zigzag(std::uint64_t difference) {
  const auto signed_difference = static_cast<std::int64_t>(difference);
  return (difference << 1) ^ static_cast<std::uint64_t>(signed_difference >> 63);
}
constexpr std::uint64_t unzigzag(std::uint64_t value) { return (value >> 1) ^ (~(value & 1) + 1); }

// Cuts numbers off the front of a payload; `sound` turns false at the first that is not there.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }
  bool sound() const { return sound_; }
  std::string_view rest() const { return rest_; }

  std::uint8_t byte() {
    if (rest_.empty()) {
      sound_ = false;
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }

  std::string_view bytes(std::uint64_t count) {
    sound_ = sound_ && count <= rest_.size();
    const std::string_view cut = rest_.substr(0, sound_ ? count : 0);
    rest_.remove_prefix(cut.size());
    return cut;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t part = byte();
      value |= std::uint64_t{part & 0x7fU} << shift;
      if ((part & 0x80U) == 0) {
        if (shift == 63 && part > 1) sound_ = false;
        return value;
      }
    }
    sound_ = false;
    return 0;
  }

 private:
  std::string_view rest_;
  bool sound_ = true;
};

}  // namespace cgphase
