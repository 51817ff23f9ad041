// What completion and the manual read in CLI11's table of verbs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cgphase {

inline std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

inline bool has_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// -o and --output; none if the option is an argument without a name.
inline std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// Words that the option accepts: those in braces after its type, as CLI::IsMember describes itself.
// Empty if it accepts others.
inline std::vector<std::string> accepted_words(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  return close == type.npos ? std::vector<std::string>()
                            : CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

}  // namespace cgphase
