// Text for people and for the wire. Names that come from outside are hostile: a cgroup name may
// hold escape sequences, HTML, quotes and bytes that are no UTF-8. Every sink escapes.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cgphase {

// Printable form of foreign bytes for terminals, logs and JSON: well-formed printable UTF-8 stays,
// control characters, DEL, C1 controls, bidirectional overrides and malformed bytes become \xHH, a
// backslash becomes \\. Injective, so two different names never look alike.
std::string escape_name(std::string_view bytes);

// Undoes escape_name; used to find a container that the user named as we printed it.
std::string unescape_name(std::string_view printed);

// Text that may hold names which are escaped already, for a terminal or a log line: as
// escape_name(), but backslashes stay single, so that doing it twice changes nothing.
std::string printable(std::string_view text);

// The candidate with the smallest Levenshtein distance to `word`; empty when none is within a third
// of its length (at least 2). For "did you mean".
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "1.5 GiB", "0 B". For tables only; JSON carries base units.
std::string human_bytes(double bytes);
// "850 ms", "1.5 s", "2 min 5 s", "3 h 12 min": rounded to what is printed.
std::string human_duration(double seconds);

}  // namespace cgphase
