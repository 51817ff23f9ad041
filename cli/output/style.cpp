#include "cli/output/style.h"

#include <unistd.h>

#include <cstdlib>

namespace cgphase {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool wants_color(const std::string& choice, const TerminalEnvironment& environment) {
  if (choice == "always") return true;
  if (choice == "never") return false;
  if (!environment.no_color.empty() || environment.term == "dumb") return false;
  return !environment.force_color.empty() || environment.is_tty;
}

const char* escape_of(Tone tone) {
  switch (tone) {
    case Tone::plain: return "";
    case Tone::good: return "\x1b[32m";
    case Tone::caution: return "\x1b[33m";
    case Tone::bad: return "\x1b[31m";
    case Tone::dim: return "\x1b[2m";
    case Tone::strong: return "\x1b[1m";
  }
  return "";
}

}  // namespace

TerminalEnvironment terminal_environment() {
  return {.no_color = variable("NO_COLOR"),
          .force_color = variable("FORCE_COLOR"),
          .term = variable("TERM"),
          .is_tty = ::isatty(STDOUT_FILENO) == 1};
}

TextStyle text_style(const CommonOptions& options, const TerminalEnvironment& environment) {
  return {.color = wants_color(options.color, environment),
          .legend = options.legend,
          .utc = options.utc,
          .wide = options.output == Output::wide,
          .shorten = environment.is_tty && options.output != Output::wide};
}

std::string toned(std::string_view text, Tone tone, const TextStyle& style) {
  if (!style.color || tone == Tone::plain || text.empty()) return std::string(text);
  return escape_of(tone) + std::string(text) + "\x1b[0m";
}

}  // namespace cgphase
