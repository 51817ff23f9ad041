// Width of text as a terminal shows it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cgphase {

// Columns of well-formed UTF-8 on a terminal: 2 for East Asian wide characters and emoji, 0 for
// combining marks.
std::size_t display_width(std::string_view text);

// Shortens to at most `width` columns; longer text ends in "...".
std::string shortened(std::string_view text, std::size_t width);
// Like shortened(), but keeps both ends, because names may differ at either:
// "ml-platform-tr...peline-worker-1".
std::string shortened_name(std::string_view name, std::size_t width);

}  // namespace cgphase
