// Style of text on this terminal, decided once from options, environment and file type.
#pragma once

#include <string>
#include <string_view>

#include "cli/options.h"

namespace cgphase {

struct TextStyle {
  bool color = false;
  bool legend = true;
  bool utc = false;
  bool wide = false;
  bool shorten = false;  // cut long names; only on a terminal
};

// The environment variables that matter; empty and unset are the same (no-color.org).
struct TerminalEnvironment {
  std::string no_color, force_color, term;
  bool is_tty = false;
};
TerminalEnvironment terminal_environment();

// --color decides. With auto, NO_COLOR or TERM=dumb disable colour; otherwise FORCE_COLOR or a
// terminal enable it. Pure.
TextStyle text_style(const CommonOptions& options, const TerminalEnvironment& environment);

enum class Tone : std::uint8_t { plain, good, caution, bad, dim, strong };
// Returns `text` in the colour of the tone; unchanged without colour. Colour must never be the only
// carrier of a state.
std::string toned(std::string_view text, Tone tone, const TextStyle& style);

}  // namespace cgphase
