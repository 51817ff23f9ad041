#include "cli/output/text_width.h"

#include <algorithm>
#include <cstdint>

namespace cgphase {
namespace {

constexpr std::string_view kEllipsis = "...";

// Removes and returns the next code point of well-formed UTF-8; a stray byte counts as one.
std::uint32_t next_code(std::string_view& rest) {
  const auto first = static_cast<unsigned char>(rest[0]);
  const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 1 || rest.size() < length) {
    rest.remove_prefix(1);
    return first;
  }
  std::uint32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i)
    code = code << 6 | (static_cast<unsigned char>(rest[i]) & 0x3FU);
  rest.remove_prefix(length);
  return code;
}

struct Range {
  std::uint32_t first, last;
};
constexpr Range kCombining[] = {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},
                                {0x610, 0x61A},   {0x64B, 0x65F},   {0x900, 0x902},
                                {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF},
                                {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
                           {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
                           {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                           {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                           {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <std::size_t N>
bool within(std::uint32_t code, const Range (&ranges)[N]) {
  return std::ranges::any_of(
      ranges, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

std::size_t width_of(std::uint32_t code) {
  if (within(code, kCombining)) return 0;
  return within(code, kWide) ? 2 : 1;
}

// `text` cut to `width` columns.
std::string_view head(std::string_view text, std::size_t width) {
  std::string_view rest = text;
  std::size_t used = 0;
  while (!rest.empty()) {
    std::string_view after = rest;
    used += width_of(next_code(after));
    if (used > width) break;
    rest = after;
  }
  return text.substr(0, text.size() - rest.size());
}

// Returns the end of `text` that fits into `width` columns. It does not begin with a combining
// mark.
std::string_view tail(std::string_view text, std::size_t width) {
  std::size_t left = display_width(text);
  while (!text.empty()) {
    std::string_view after = text;
    const std::size_t first = width_of(next_code(after));
    if (left <= width && first > 0) break;
    left -= first;
    text = after;
  }
  return text;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) width += width_of(next_code(text));
  return width;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  const std::size_t kept = width > kEllipsis.size() ? width - kEllipsis.size() : 0;
  return std::string(head(text, kept)) + std::string(kEllipsis.substr(0, width));
}

std::string shortened_name(std::string_view name, std::size_t width) {
  if (display_width(name) <= width) return std::string(name);
  const std::size_t kept = width > kEllipsis.size() ? width - kEllipsis.size() : 0;
  std::string text(head(name, kept / 2));
  const std::size_t left = kept - display_width(text);
  text += kEllipsis.substr(0, width);
  return text += tail(name, left);
}

}  // namespace cgphase
