// How text is to look on this terminal: decided once from options, environment and file type.
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
  bool shorten = false;  // long names are cut, on a terminal only
};

// The environment variables that matter; empty and unset are the same (no-color.org).
struct TerminalEnvironment {
  std::string no_color, force_color, term;
  bool is_tty = false;
};
TerminalEnvironment terminal_environment();

// --color decides; with auto: NO_COLOR and TERM=dumb say no, FORCE_COLOR yes, then the tty. Pure.
TextStyle text_style(const CommonOptions& options, const TerminalEnvironment& environment);

enum class Tone : std::uint8_t { plain, good, caution, bad, dim, strong };
// `text` in the tone's colour; unchanged without colour. Never the only carrier of a state.
std::string toned(std::string_view text, Tone tone, const TextStyle& style);

}  // namespace cgphase
