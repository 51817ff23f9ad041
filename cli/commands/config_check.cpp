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
  if (end->exit == 0)
    return ok_reply({{"file", escape_name(file.empty() ? kServiceConfig : file)},
                     {"valid", true}});
  std::string_view said = trim(end->said);
  if (said.starts_with(kSpeaker)) said.remove_prefix(kSpeaker.size());
  if (is_verdict(end->exit) && !said.empty())
    return complaint(static_cast<Exit>(*end->exit), std::string(said));
  return complaint(Exit::failure, program + " could not check: " + std::string(said));
}

}  // namespace cgphase
