// Scanning of kernel text: no allocation, no locale, no exceptions. Used on the sampling path.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cgphase {

// The whole of `text` as an unsigned decimal; nothing else may stand in it. Overflow is absent.
std::optional<std::uint64_t> parse_u64(std::string_view text);

// The whole of `text` as a decimal floating-point number ("1.5", "-2e3"); nan and inf are absent.
std::optional<double> parse_double(std::string_view text);

// `text` without leading and trailing spaces, tabs, CR and LF.
std::string_view trim(std::string_view text);

// Cuts the first line (without LF) off `rest`. False when nothing is left.
bool next_line(std::string_view& rest, std::string_view& line);

// Cuts the first word (separated by blanks or LF) off `rest`. False when nothing is left.
bool next_word(std::string_view& rest, std::string_view& word);

// "1.5GiB", "512M", "1073741824", "4 KiB": bytes; K, M, G, T are binary, as in systemd.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// "0.1 %", "5%", "0.001": a share of one; only the first two are in per cent.
std::optional<double> parse_share(std::string_view text);

// "150ms", "2s", "5 min", "1h", "3d": nanoseconds. A bare number is not a duration.
std::optional<std::int64_t> parse_duration_ns(std::string_view text);

}  // namespace cgphase
