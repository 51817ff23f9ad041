// Text for people and for the wire. Names from outside are hostile: a cgroup name may contain
// escape sequences, HTML, quotes and invalid UTF-8. All output escapes them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cgphase {

// Printable form of foreign bytes for terminals, logs and JSON. Well-formed printable UTF-8 is
// unchanged. Control characters, DEL, C1 controls, bidirectional overrides and malformed bytes
// become \xHH. A backslash becomes \\. The mapping is injective, so two different names never print
// alike.
std::string escape_name(std::string_view bytes);

// The inverse of escape_name(). It finds a container whose printed name the user typed.
std::string unescape_name(std::string_view printed);

// Makes text printable that may contain escaped names, for a terminal or a log line. It works as
// escape_name(), but backslashes are not doubled, so that a second call changes nothing.
std::string printable(std::string_view text);

// The candidate with the smallest Levenshtein distance to `word`, for "did you mean". Empty if no
// distance is within a third of the word's length (at least 2).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "1.5 GiB", "0 B". For tables only; JSON carries base units.
std::string human_bytes(double bytes);
// "850 ms", "1.5 s", "2 min 5 s", "3 h 12 min". The value is rounded to the last printed unit.
std::string human_duration(double seconds);

}  // namespace cgphase
