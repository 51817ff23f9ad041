#include "cli/manual.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "cli/table_words.h"

namespace cgphase {
namespace {

std::string plain(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '_' || c == '*') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string bold(std::string_view text) { return "*" + plain(text) + "*"; }

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + bold(word);
  return text;
}

// "*auto*|*never*", "_CONTAINER_|_TRACE_", with "..." after it if there may be several.
std::string value_of(const CLI::Option& option) {
  std::string text = joined(accepted_words(option), "|");
  if (text.empty()) {
    const std::string type = option.get_type_name();
    for (const std::string& kind : CLI::detail::split(type.substr(0, type.find(':')), '|'))
      text += (text.empty() ? "_" : "|_") + plain(kind) + "_";
  }
  return text + (option.get_items_expected_max() > 2 ? "..." : "");
}

// "*-o*, *--output* _FILE_", or the value alone if the option is an argument.
std::string spelled(const CLI::Option& option) {
  const std::string names = joined(names_of(option), ", ");
  if (!has_value(option)) return names;
  return names + (names.empty() ? "" : " ") + value_of(option);
}

std::string sentence(const std::string& text) {
  return text.ends_with('.') ? plain(text) : plain(text) + ".";
}

// Each option after `indent`, what it does below.
std::string described_options(const CLI::App& verb, const std::string& indent) {
  std::string text;
  for (const CLI::Option* option : verb.get_options()) {
    if (option == verb.get_help_ptr() && verb.get_parent() != nullptr) continue;
    const std::string initial = option->get_default_str();
    text += "\n" + indent + spelled(*option) + "\n" + indent + "\t" +
            sentence(option->get_description() + (initial.empty() ? "" : " [" + initial + "]")) +
            "\n";
  }
  return text;
}

// "*record* *-o* _FILE_ [_option_...] [_CONTAINER_...]"
std::string usage(const CLI::App& verb, const std::string& name) {
  std::string required, arguments;
  bool optional = false;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional())
      arguments +=
          option->get_required() ? " " + value_of(*option) : " [" + value_of(*option) + "]";
    else if (option->get_required())
      required += " " + spelled(*option);
    else if (option != verb.get_help_ptr())
      optional = true;
  }
  return bold(name) + required + (optional ? " [_option_...]" : "") + arguments;
}

void describe(const CLI::App& verb, const std::string& name, std::string& text) {
  for (const CLI::App* below : verbs_of(verb))
    describe(*below, name.empty() ? below->get_name() : name + " " + below->get_name(), text);
  if (!verbs_of(verb).empty()) return;
  text += "\n" + usage(verb, name) + "\n\t" + sentence(verb.get_description());
  if (const std::string more = verb.get_footer(); !more.empty()) text += " " + sentence(more);
  text += "\n" + described_options(verb, "\t");
}

}  // namespace

std::string manual(const CLI::App& app) {
  std::string text = "# COMMON OPTIONS\n" + described_options(app, "") + "\n# VERBS\n";
  describe(app, "", text);
  return text + "\n";
}

}  // namespace cgphase
