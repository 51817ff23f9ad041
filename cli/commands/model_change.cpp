#include "cli/commands/model_change.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/parse.h"
#include "base/text.h"
#include "cli/daemon_client.h"
#include "cli/offline.h"
#include "protocol/replies.h"
#include "model/model.h"
#include "model/trace_features.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr const char* kStateDir = "/var/lib/cgphase";

// Parses a value of the configuration. Quoted text and numbers of TOML are JSON, too.
json toml_value(const std::string& text) { return json::parse(text, nullptr, false); }

void take_row(const ConfigEntry& row, HostSetting& host) {
  const auto& [key, raw, origin] = row;
  const json value = toml_value(raw);
  const std::string text = value.is_string() ? value.get<std::string>() : std::string();
  if (key == "state_dir") host.state_dir = text;
  if (key == "model" && origin != "default") host.model_set_at = origin;
  if (key == "policy") host.policy = text;
  if (key == "risk") host.risk = parse_share(text);
  if (key == "rails.at_risk_ratio" && value.is_number()) host.at_risk_ratio = value.get<double>();
}

// Returns the path of the model that a daemon would use if it started now.
OrComplaint<std::string> model_without_daemon(const std::string& state_dir) {
  const Result<InstalledModels> found = installed_models(state_dir);
  if (!found) return complaint(found.error());
  for (const InstalledModel& model : found->in_order())
    if (load_model(model.path)) return model.path;
  return default_model_path();
}

// Asks a running daemon to load the model. The caller deletes old models only after this succeeded.
std::optional<Complaint> notify_daemon(const CommonOptions& options, const HostSetting& host,
                              ActionReport& report) {
  if (!host.running) {
    report.done += "; the daemon uses it from its next start";
    return std::nullopt;
  }
  const auto taken = ask_for<ActionReport>(options.admin_socket(), ModelRequest{});
  if (!taken) return taken.error();
  report.changes.push_back(taken->done);
  return std::nullopt;
}

std::string named(std::optional<std::uint64_t> number) {
  return number ? "model " + std::to_string(*number) : "the package's model";
}

}  // namespace

OrComplaint<HostSetting> host_setting(const CommonOptions& options, const std::string& state_dir) {
  HostSetting host{.state_dir = state_dir.empty() ? kStateDir : state_dir};
  const auto config = ask_for<ConfigReply>(options.socket, ConfigRequest{});
  const auto status = ask_for<StatusReport>(options.socket, StatusRequest{});
  const auto gone = [](const auto& reply) {
    return !reply && reply.error().exit == Exit::unreachable;
  };
  if (state_dir.empty() && !config && !gone(config)) return std::unexpected(config.error());
  if (state_dir.empty() && !status && !gone(status)) return std::unexpected(status.error());
  if (config && status) {
    HostSetting asked;
    for (const ConfigEntry& row : config->config) take_row(row, asked);
    asked.running = true;
    asked.model = status->model.path;
    if (state_dir.empty() || asked.state_dir == state_dir) return asked;
  }
  auto model = model_without_daemon(host.state_dir);
  if (!model) return std::unexpected(model.error());
  host.model = *std::move(model);
  return host;
}

std::optional<Complaint> check_may_change(const HostSetting& host) {
  if (host.model_set_at.empty()) return std::nullopt;
  return Complaint{Exit::invalid,
                   "the configuration names a model (" + host.model_set_at +
                       "), which overrides an installed one: remove that line and reload first"};
}

OrComplaint<ActionReport> install_model(const CommonOptions& options, const HostSetting& host,
                                        std::string_view text) {
  if (const auto wrong = check_may_change(host)) return std::unexpected(*wrong);
  Result<ModelInstaller> installer = ModelInstaller::open(host.state_dir);
  if (!installer) return complaint(installer.error());
  const Result<InstalledModels> found = installed_models(host.state_dir);
  const std::optional<std::uint64_t> before = found ? found->current : std::nullopt;
  const Result<InstalledModel> added = installer->add(text);
  if (!added) return complaint(added.error());
  ActionReport report{.done = named(added->number) + " is installed in place of " + named(before),
                      .undo = shell_command({"cgphase", "model", "rollback"}), .changes = {},
                      .failures = {}};
  std::optional<Complaint> wrong;
  if (const Status used = installer->use(added->number); !used)
    wrong = complaint(used.error()).error();
  else
    wrong = notify_daemon(options, host, report);
  if (wrong) {
    const Status back = installer->use(before), removed = installer->remove(added->number);
    for (const Status* failed : {&back, &removed})
      if (!*failed) wrong->text += "; undoing this failed, too: " + failed->error().text;
    return std::unexpected(*wrong);
  }
  if (const Status tidied = installer->tidy(before); !tidied)
    report.failures.push_back("an old model was not deleted: " + tidied.error().text);
  return report;
}

OrComplaint<ActionReport> roll_back_model(const CommonOptions& options, const HostSetting& host) {
  if (const auto wrong = check_may_change(host)) return std::unexpected(*wrong);
  const Result<InstalledModels> found = installed_models(host.state_dir);
  if (!found) return complaint(found.error());
  if (!found->current)
    return complaint(Exit::failure, "no model is installed in " + printable(host.state_dir) +
                                        ", the package's is in use; see `cgphase model list`");
  std::optional<std::uint64_t> before;
  std::string undo;
  for (const InstalledModel& model : found->in_order()) {
    if (model.number == *found->current)
      undo = shell_command({"cgphase", "model", "install", escape_name(model.path)});
    else if (!before)
      before = model.number;
  }
  Result<ModelInstaller> installer = ModelInstaller::open(host.state_dir);
  if (!installer) return complaint(installer.error());
  ActionReport report{.done = named(before) + " is in use again, in place of " +
                              named(found->current),
                      .undo = undo, .changes = {}, .failures = {}};
  if (const Status used = installer->use(before); !used) return complaint(used.error());
  if (auto wrong = notify_daemon(options, host, report)) {
    if (const Status back = installer->use(found->current); !back)
      wrong->text += "; undoing this failed, too: " + back.error().text;
    return std::unexpected(*wrong);
  }
  return report;
}

Status check_for_daemon(const Model& model, const std::string& name) {
  if (schema_columns(model.schema).empty()) return {};
  return failure(
      ErrorKind::invalid,
      name + ": uses columns of traces, which the daemon does not have: it cannot be installed");
}

int print_change(const OrComplaint<ActionReport>& change, const CommonOptions& options) {
  if (!change) return complain(change.error());
  const bool failed = !change->failures.empty();
  if (!options.silent() || failed)
    if (const int printed = print(kActionForm, to_json(*change), options); printed != 0)
      return printed;
  return failed ? static_cast<int>(Exit::failure) : 0;
}

}  // namespace cgphase
