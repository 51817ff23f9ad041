// How wide text is, counted as a terminal shows it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cgphase {

// Columns that a terminal gives to well-formed UTF-8: 2 for East Asian wide and emoji, 0 for
// combining marks.
std::size_t display_width(std::string_view text);

// At most `width` columns; what is longer ends in "...".
std::string shortened(std::string_view text, std::size_t width);
// The same with both ends kept, for names differ at either: "ml-platform-tr...peline-worker-1".
std::string shortened_name(std::string_view name, std::size_t width);

}  // namespace cgphase
