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
#include "cli/output/view.h"

namespace cgphase {
namespace {

using nlohmann::json;

std::string render_config(const json& body, const TextStyle& style,
                          std::span<const std::pair<const char*, const char*>> columns) {
  std::vector<Table::Column> titles;
  for (const auto& [title, path] : columns) titles.push_back({title, Table::Align::left});
  Table table(std::move(titles));
  for (const json& row : view_array(body, "/config")) {
    std::vector<Table::Cell> cells;
    for (const auto& [title, path] : columns) {
      const std::string text = view_text(row, path);
      cells.push_back({text.empty() ? "-" : text, Tone::plain});
    }
    table.add(std::move(cells));
  }
  return table.text(style);
}

constexpr std::pair<const char*, const char*> kConfigTitles[] = {
    {"KEY", "/key"}, {"VALUE", "/value"}, {"ORIGIN", "/origin"}, {"DEFAULT", "/default"}};

std::string render_values(const json& body, const TextStyle& style) {
  return render_config(body, style, std::span(kConfigTitles).first(2));
}

std::string render_origins(const json& body, const TextStyle& style) {
  return render_config(body, style, std::span(kConfigTitles).first(3));
}

std::string render_differences(const json& body, const TextStyle& style) {
  if (view_array(body, "/config").empty())
    return style.legend ? "every key has its default\n" : "";
  return render_config(body, style, kConfigTitles);
}

std::string render_config_check(const json& body, const TextStyle&) {
  std::string text = view_text(body, "/file") + ": valid; a daemon would start with it\n";
  for (const json& warning : view_array(body, "/warnings"))
    text += "warning: " + printable(warning.get<std::string>()) + "\n";
  return text;
}

constexpr CsvColumn kConfigColumns[] = {
    {"key", "/key"}, {"value", "/value"}, {"origin", "/origin"}, {"default", "/default"}};
constexpr CsvColumn kCheckColumns[] = {{"file", "/file"}, {"valid", "/valid"}};

const Form kValuesForm{.text = render_values, .rows = "/config",
                       .columns = std::span(kConfigColumns).first(2)};
const Form kOriginsForm{.text = render_origins, .rows = "/config",
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
    for (const json& mode : view_array(*body, "/modes")) (*body)["config"].push_back(mode);
  return print(with_origin ? kOriginsForm : kValuesForm, *body, options);
}

int diff_config(const CommonOptions& options) {
  auto body = ask_config(options);
  if (!body) return complain(body.error());
  const ConfigDefaults defaults = parse_config_defaults(default_config_file());
  return print(kDifferencesForm, config_differences(*std::move(body), defaults), options);
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
  verb->add_option("file", *file,
                   "Configuration file; conf.d beside it is included [/etc/cgphase/cgphase.toml]");
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
