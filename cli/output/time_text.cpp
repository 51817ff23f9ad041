#include "cli/output/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <optional>

#include "base/iso_time.h"
#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

using std::chrono::nanoseconds;
using Maybe = std::optional<WallTime>;

constexpr double kLatestSeconds = 9e9;  // in nanoseconds it still fits an int64
constexpr std::size_t kShortestEpoch = 5;  // digits before the point; four are a year
constexpr std::size_t kLongestTime = 64;
// A text of kLongestTime contains at most 21 durations: their sum fits.
constexpr nanoseconds kLongestDuration = std::chrono::days(3650);

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Maybe from_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > kLatestSeconds) return std::nullopt;
  return WallTime(nanoseconds(std::llround(seconds * 1e9)));
}

// Parses a sequence of durations: "1h30m", "10 min".
std::optional<nanoseconds> parse_durations(std::string_view text) {
  nanoseconds sum{0};
  text = trim(text);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto unit = std::ranges::find_if(text, [](char c) { return c >= 'a' && c <= 'z'; });
    const auto end = std::find_if(unit, text.end(), [](char c) { return c < 'a' || c > 'z'; });
    const auto length = static_cast<std::size_t>(end - text.begin());
    const auto one = parse_duration_ns(text.substr(0, length));
    if (!one || nanoseconds(*one) > kLongestDuration) return std::nullopt;
    sum += nanoseconds(*one);
    text = trim(text.substr(length));
  }
  return sum;
}

Maybe relative(std::string_view text, WallTime now) {
  if (text == "now") return now;
  std::string_view duration = text;
  if (text.starts_with('-')) duration.remove_prefix(1);
  else if (text.ends_with(" ago")) duration.remove_suffix(4);
  else return std::nullopt;
  const auto past = parse_durations(duration);
  if (!past || *past > now.time_since_epoch()) return std::nullopt;
  return now - *past;
}

Maybe epoch(std::string_view text) {
  const bool marked = text.starts_with('@');
  if (marked) text.remove_prefix(1);
  const bool digits = !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || c == '.';
  });
  const std::size_t whole_digits = std::min(text.find('.'), text.size());
  if (!digits || (!marked && whole_digits < kShortestEpoch)) return std::nullopt;
  const auto seconds = parse_double(text);
  return seconds ? from_seconds(*seconds) : std::nullopt;
}

std::tm broken_down(WallTime time, bool utc) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  const std::time_t seconds = whole.count();
  std::tm parts{};
  if (utc) ::gmtime_r(&seconds, &parts);
  else ::localtime_r(&seconds, &parts);
  return parts;
}

Maybe assemble(std::tm parts, double fraction, std::optional<int> offset, bool utc) {
  parts.tm_isdst = -1;
  const bool fixed = offset || utc;
  const std::time_t whole = fixed ? ::timegm(&parts) : ::mktime(&parts);
  return from_seconds(static_cast<double>(whole - offset.value_or(0)) + fraction);
}

Maybe calendar(std::string_view text, WallTime now, bool utc) {
  std::tm parts = broken_down(now, utc);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  bool dated = true;
  if (text.starts_with("yesterday")) {
    text.remove_prefix(9);
    parts.tm_mday -= 1;  // mktime and timegm carry
  } else if (text.starts_with("today")) {
    text.remove_prefix(5);
  } else if (text.size() > 4 && text[4] == '-') {
    if (!take_date(text, parts)) return std::nullopt;
  } else {
    dated = false;
  }
  if (dated && text.empty()) return assemble(parts, 0, std::nullopt, utc);
  if (dated && !take_char(text, ' ') && !take_char(text, 'T')) return std::nullopt;
  double fraction = 0;
  std::optional<int> offset;
  if (!take_clock(text, parts, fraction) || !take_zone(text, offset)) return std::nullopt;
  return assemble(parts, fraction, offset, utc);
}

}  // namespace

Result<WallTime> parse_time(std::string_view text, WallTime now, bool utc) {
  const std::string_view word = trim(text);
  if (word.size() <= kLongestTime) {
    if (const Maybe time = relative(word, now)) return *time;
    if (const Maybe time = epoch(word)) return *time;
    if (const Maybe time = calendar(word, now, utc)) return *time;
  }
  return failure(ErrorKind::invalid, "'" + escape_name(word.substr(0, kLongestTime)) +
                                         "' is not a time; write -10m, \"3m ago\", \"yesterday "
                                         "14:00\", 2026-01-31T14:03 or seconds since the epoch");
}

std::string time_text(double seconds, bool utc) {
  const auto time = from_seconds(seconds);
  if (!time) return "-";
  const std::tm parts = broken_down(*time, utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}{}", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     utc ? " UTC" : "");
}

}  // namespace cgphase
