// Parses kernel text without allocation, locale or exceptions. Used on the sampling path.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cgphase {

// Parses all of `text` as an unsigned decimal number. Other characters and overflow give an absent
// value.
std::optional<std::uint64_t> parse_u64(std::string_view text);

// Parses all of `text` as a decimal floating-point number ("1.5", "-2e3"). nan and inf are absent.
std::optional<double> parse_double(std::string_view text);

// `text` without leading and trailing spaces, tabs, CR and LF.
std::string_view trim(std::string_view text);

// Removes the first line from `rest` and returns it without LF in `line`. False if `rest` is empty.
bool next_line(std::string_view& rest, std::string_view& line);

// Removes the first word from `rest`; blanks and LF separate words. False if no word is left.
bool next_word(std::string_view& rest, std::string_view& word);

// Bytes: "1.5GiB", "512M", "1073741824", "4 KiB". K, M, G and T are binary, as in systemd.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// A ratio: "0.1 %", "5%" and "0.001". A number without % is the ratio itself.
std::optional<double> parse_share(std::string_view text);

// Nanoseconds: "150ms", "2s", "5 min", "1h", "3d". A number without a unit is not a duration.
std::optional<std::int64_t> parse_duration_ns(std::string_view text);

}  // namespace cgphase
