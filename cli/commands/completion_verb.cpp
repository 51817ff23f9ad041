// completion: prints the shell completion script, for use without the package.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "cli/commands/embedded_files.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"

namespace cgphase {

void add_completion_verb(CLI::App& app, const CommonOptions&, int& exit_code) {
  CLI::App* const verb = app.add_subcommand("completion", "Print a shell completion script");
  verb->footer("The package installs the same: . <(cgphase completion bash)");
  const auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "Shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->callback([shell, &exit_code] {
    const std::string_view text = *shell == "bash"  ? bash_completion()
                                  : *shell == "zsh" ? zsh_completion()
                                                    : fish_completion();
    exit_code = finish(emit(std::string(text), ""));
  });
}

}  // namespace cgphase
