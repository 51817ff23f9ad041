// completion: what completes this command in a shell, for who has not installed the package.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands/embedded_files.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"

namespace cgphase {

void add_completion_verb(CLI::App& app, const CommonOptions&, int& exit_code) {
  CLI::App* const verb = app.add_subcommand("completion", "What completes this command in a shell");
  const auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  verb->callback([shell, &exit_code] {
    const std::string text(*shell == "bash" ? bash_completion() : zsh_completion());
    exit_code = finish(emit(text, ""));
  });
}

}  // namespace cgphase
