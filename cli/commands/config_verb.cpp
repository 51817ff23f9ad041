// config check, show and diff: the daemon's configuration.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands/config_check.h"
#include "cli/commands/config_diff.h"
#include "cli/commands/embedded_files.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/output/table.h"
#include "protocol/replies.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr Table::Column kConfigTitles[] = {{"KEY", Table::Align::left},
                                           {"VALUE", Table::Align::left},
                                           {"ORIGIN", Table::Align::left},
                                           {"DEFAULT", Table::Align::left}};

template <class Rows>
std::string render_config(const Rows& rows, std::size_t columns, const TextStyle& style) {
  const auto cell = [](const std::string& text) {
    return Table::Cell{text.empty() ? "-" : text, Tone::plain};
  };
  Table table({kConfigTitles, kConfigTitles + columns});
  for (const auto& row : rows) {
    std::vector<Table::Cell> cells = {cell(row.key), cell(row.value), cell(row.origin)};
    if constexpr (requires { row.shipped; }) cells.push_back(cell(row.shipped.value_or("")));
    cells.resize(columns);
    table.add(std::move(cells));
  }
  return table.text(style);
}

template <std::size_t columns>
Result<std::string> render_rows(const json& body, const TextStyle& style) {
  const Result<ConfigReply> reply = read_reply<ConfigReply>(body);
  if (!reply) return std::unexpected(reply.error());
  return render_config(reply->config, columns, style);
}

Result<std::string> render_differences(const json& body, const TextStyle& style) {
  const Result<ConfigDifferences> found = read_reply<ConfigDifferences>(body);
  if (!found) return std::unexpected(found.error());
  if (!found->config.empty()) return render_config(found->config, 4, style);
  return style.legend ? "every key has its default\n" : "";
}

std::string render_config_check(const json& body, const TextStyle&) {
  std::string text = body.at("file").get<std::string>() + ": valid; a daemon would start with it\n";
  for (const json& warning : body.at("warnings"))
    text += "warning: " + printable(warning.get<std::string>()) + "\n";
  return text;
}

constexpr CsvColumn kConfigColumns[] = {
    {"key", "/key"}, {"value", "/value"}, {"origin", "/origin"}, {"default", "/default"}};
constexpr CsvColumn kCheckColumns[] = {{"file", "/file"}, {"valid", "/valid"}};

const Form kValuesForm{.text = render_rows<2>, .rows = "/config",
                       .columns = std::span(kConfigColumns).first(2)};
const Form kOriginsForm{.text = render_rows<3>, .rows = "/config",
                        .columns = std::span(kConfigColumns).first(3)};
const Form kDifferencesForm{.text = render_differences, .rows = "/config",
                            .columns = kConfigColumns};
const Form kConfigCheckForm{.text = render_config_check, .columns = kCheckColumns};

OrComplaint<json> ask_config(const CommonOptions& options) {
  return ask_daemon(options.socket, ConfigRequest{});
}

// Modes of containers are not configuration keys, but they have an origin.
int show_config(bool with_origin, const CommonOptions& options) {
  auto body = ask_config(options);
  if (!body) return complain(body.error());
  if (with_origin)
    for (const json& mode : body->value("modes", json::array())) (*body)["config"].push_back(mode);
  return print(with_origin ? kOriginsForm : kValuesForm, *body, options);
}

int diff_config(const CommonOptions& options) {
  auto body = ask_config(options);
  if (!body) return complain(body.error());
  const auto reply = read_reply<ConfigReply>(*body);
  if (!reply) return complain(Exit::failure, reply.error().text);
  const ConfigDefaults defaults = parse_config_defaults(default_config_file());
  (*body)["config"] = to_json(config_differences(*reply, defaults))["config"];
  return print(kDifferencesForm, *body, options);
}

int check_config(const std::string& file, const CommonOptions& options) {
  const auto body = check_configuration(find_daemon_program(), file);
  return body ? print(kConfigCheckForm, *body, options) : complain(body.error());
}

}  // namespace

void add_config_verbs(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const config = app.add_subcommand("config", "Check or show the daemon's configuration");
  config->require_subcommand(1);
  const auto file = std::make_shared<std::string>();
  CLI::App* verb =
      config->add_subcommand("check", "Check whether a daemon would start with a configuration");
  verb->footer(
      "It also checks the model and this host's cgroups. Errors have file, line and column.");
  verb->add_option("file", *file,
                   "Configuration file; conf.d beside it is included [/etc/cgphase/cgphase.toml]")
      ->type_name("FILE");
  verb->callback([file, &options, &exit_code] { exit_code = check_config(*file, options); });
  const auto with_origin = std::make_shared<bool>(false);
  verb = config->add_subcommand("show", "Show every key and its value in force");
  verb->add_flag("--origin", *with_origin,
                 "Also show where it was set: file and line, option, command or default");
  verb->callback([with_origin, &options, &exit_code] {
    exit_code = show_config(*with_origin, options);
  });
  verb = config->add_subcommand("diff", "Show the keys whose value is not the default");
  verb->callback([&options, &exit_code] { exit_code = diff_config(options); });
}

}  // namespace cgphase
