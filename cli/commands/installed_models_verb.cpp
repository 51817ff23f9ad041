// `cgphase model install | rollback | list`: the models of this host.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands/model_change.h"
#include "cli/commands/model_check.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/table.h"
#include "cli/output/time_text.h"
#include "cli/output/view.h"
#include "model/model.h"

namespace cgphase {
namespace {

using nlohmann::json;

struct InstallWords {
  std::string file, state_dir;
  std::vector<std::string> traces;
};

// Returns the text that was checked, so that this text is installed even if the file changes
// meanwhile.
OrComplaint<std::string> checked_text(const InstallWords& words) {
  const Result<std::string> text = read_file(words.file, kMaxModelFileBytes);
  if (!text) return complaint(text.error());
  const Result<Model> model = parse_model(*text, words.file);
  if (!model) return complaint(model.error());
  if (const Status fits = check_for_daemon(*model, words.file); !fits)
    return complaint(fits.error());
  if (words.traces.empty()) return *text;
  const auto proof = check_model_file({.model = words.file, .traces = words.traces});
  if (!proof) return complaint(proof.error());
  if (proof->violations > 0)
    return complaint(Exit::failure,
                     fmt::format("{}: {} certified phases differ from the double engine's; it was "
                                 "not installed (cgphase model check)",
                                 escape_name(words.file), proof->violations));
  return *text;
}

int install(const InstallWords& words, const CommonOptions& options) {
  const auto text = checked_text(words);
  if (!text) return complain(text.error());
  const auto host = host_setting(options, words.state_dir);
  if (!host) return complain(host.error());
  return print_change(install_model(options, *host, *text), options);
}

int roll_back(const InstallWords& words, const CommonOptions& options) {
  const auto host = host_setting(options, words.state_dir);
  if (!host) return complain(host.error());
  return print_change(roll_back_model(options, *host), options);
}

json described(const std::string& path) {
  json row = {{"path", escape_name(path)}, {"problem", nullptr}};
  const Result<Model> model = load_model(path);
  if (!model) {
    row["problem"] = printable(model.error().text);
    return row;
  }
  row["phases"] = model->centroids.count;
  row["features"] = model->crbm.n_vis;
  row["step_seconds"] = model->step_seconds;
  row["provenance"] = json::object();
  for (const auto& [key, text] : model->provenance)
    row["provenance"][escape_name(key)] = escape_name(text);
  return row;
}

json row_of(json row, const char* origin, bool in_use) {
  row["origin"] = origin;
  row["in_use"] = in_use;
  return row;
}

OrComplaint<json> models_reply(const HostSetting& host) {
  const Result<InstalledModels> found = installed_models(host.state_dir);
  if (!found) return complaint(found.error());
  json rows = json::array();
  bool listed = false;
  for (const InstalledModel& model : found->models) {
    json row = row_of(described(model.path), "installed", model.path == host.model);
    row["number"] = model.number;
    row["installed_seconds"] = seconds_since_epoch(model.installed);
    row["current"] = model.number == found->current;
    if (model.number == found->current) row["since_seconds"] = seconds_since_epoch(found->since);
    listed |= model.path == host.model;
    rows.push_back(std::move(row));
  }
  const std::string package = default_model_path();
  if (package != host.model || host.model_set_at.empty())
    rows.push_back(row_of(described(package), "package", package == host.model));
  if (!listed && package != host.model)
    rows.push_back(row_of(described(host.model),
                          host.model_set_at.empty() ? "package" : "configuration", true));
  return ok_reply({{"models", std::move(rows)}, {"state_dir", escape_name(host.state_dir)}});
}

std::string render_models(const json& body, const TextStyle& style) {
  Table table({{"", Table::Align::left}, {"MODEL", Table::Align::left},
               {"INSTALLED", Table::Align::left}, {"IN USE SINCE", Table::Align::left},
               {"PHASES", Table::Align::right}, {"PATH", Table::Align::left}});
  const auto time = [&](const json& row, const char* path) {
    const auto seconds = view_number(row, path);
    return seconds ? time_text(*seconds, style.utc) : std::string("-");
  };
  for (const json& row : view_array(body, "/models")) {
    const std::string problem = view_text(row, "/problem");
    const auto number = view_number(row, "/number");
    table.add({{view_flag(row, "/in_use") ? "*" : "", Tone::strong},
               {number ? count_text(number) : view_text(row, "/origin"), Tone::plain},
               {time(row, "/installed_seconds"), Tone::plain},
               {time(row, "/since_seconds"), Tone::plain},
               {count_text(view_number(row, "/phases")), Tone::plain},
               {view_text(row, "/path") + (problem.empty() ? "" : ": cannot be used: " + problem),
                problem.empty() ? Tone::plain : Tone::bad}});
  }
  return table.text(style);
}

constexpr CsvColumn kModelColumns[] = {
    {"number", "/number"}, {"origin", "/origin"}, {"in_use", "/in_use"},
    {"installed_seconds", "/installed_seconds"}, {"since_seconds", "/since_seconds"},
    {"phases", "/phases"}, {"features", "/features"}, {"step_seconds", "/step_seconds"},
    {"path", "/path"}, {"problem", "/problem"}};
const Form kModelsForm{.text = render_models, .rows = "/models", .columns = kModelColumns};

int list(const InstallWords& words, const CommonOptions& options) {
  const auto host = host_setting(options, words.state_dir);
  if (!host) return complain(host.error());
  const auto body = models_reply(*host);
  return body ? print(kModelsForm, *body, options) : complain(body.error());
}

}  // namespace

void add_installed_model_verbs(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const model = app.get_subcommand("model");
  const auto add = [&](const char* name, const char* help,
                       int (*body)(const InstallWords&, const CommonOptions&),
                       const std::shared_ptr<InstallWords>& words) {
    CLI::App* const verb = model->add_subcommand(name, help);
    verb->add_option("--state-dir", words->state_dir,
                     "State directory of a daemon that does not run")
        ->type_name("DIR");
    verb->callback([words, body, &options, &exit_code] { exit_code = body(*words, options); });
    return verb;
  };
  const auto words = std::make_shared<InstallWords>();
  CLI::App* const installing =
      add("install", "Use a model on this host from now on (admin)", install, words);
  installing->footer("Refused while the configuration names a model.");
  installing->add_option("file", words->file, "Model file")->type_name("FILE")->required();
  installing
      ->add_option("traces", words->traces,
                   "Traces on which its fixed-point arithmetic must pass first")
      ->type_name("TRACE");
  add("rollback", "Return to the previous model, at last the package's (admin)", roll_back,
      std::make_shared<InstallWords>());
  add("list", "Show the models of this host, and which is in use", list,
      std::make_shared<InstallWords>());
}

}  // namespace cgphase
