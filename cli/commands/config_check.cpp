#include "cli/commands/config_check.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "cli/run_program.h"

namespace cgphase {
namespace {

constexpr const char* kServiceConfig = "/etc/cgphase/cgphase.toml";
constexpr std::string_view kSpeaker = "cgphased: ";  // prefix of its messages

bool is_verdict(std::optional<int> exit) {
  return exit == static_cast<int>(Exit::failure) || exit == static_cast<int>(Exit::denied) ||
         exit == static_cast<int>(Exit::invalid);
}

// The lines of `said`, without the prefix of the program.
std::vector<std::string> lines_of(std::string_view said) {
  std::vector<std::string> lines;
  std::string_view line;
  while (next_line(said, line)) {
    if (line.starts_with(kSpeaker)) line.remove_prefix(kSpeaker.size());
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
  return lines;
}

}  // namespace

std::string find_daemon_program() { return find_program("cgphased", "/usr/sbin/cgphased"); }

OrComplaint<nlohmann::json> check_configuration(const std::string& program,
                                                const std::string& file) {
  if (program.empty())
    return complaint(Exit::failure,
                     "config check: no cgphased beside this program or in /usr/sbin; install the "
                     "package cgphase");
  std::vector<std::string> words = {program, "--check-config"};
  if (!file.empty()) words.insert(words.end(), {"--config", file});
  const auto end = run_program(std::move(words), STDERR_FILENO);
  if (!end) return std::unexpected(end.error());
  std::vector<std::string> lines = lines_of(end->said);
  if (end->exit == 0)
    return ok_reply({{"file", escape_name(file.empty() ? kServiceConfig : file)},
                     {"valid", true},
                     {"warnings", std::move(lines)}});
  // Warnings come before the error.
  if (is_verdict(end->exit) && !lines.empty())
    return complaint(static_cast<Exit>(*end->exit), std::move(lines.back()));
  return complaint(Exit::failure, program + " could not check: " + std::string(trim(end->said)));
}

}  // namespace cgphase
