// Changes the model that this host uses: the files in its state directory, and the running daemon.
// Either both change or neither.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "cli/output/print.h"
#include "model/installed_models.h"
#include "model/model.h"
#include "protocol/report.h"

namespace cgphase {

// Settings of the running daemon, or those that a daemon would have if none runs.
struct HostSetting {
  bool running = false;         // a daemon with this `state_dir` answers
  std::string state_dir;
  std::string model;            // path of the model in use, or that a daemon would use
  std::string model_set_at;     // where the configuration names a model; empty: it names none
  std::string policy = "phase";
  std::optional<double> risk;             // absent: the default
  std::optional<double> at_risk_ratio;    // absent: the default
};

// Reads the setting. `state_dir` belongs to a stopped daemon; if empty, the running daemon's is
// used, or /var/lib/cgphase if none answers. Complaints: those of ask_daemon except unreachable;
// those of reading the files.
OrComplaint<HostSetting> host_setting(const CommonOptions& options, const std::string& state_dir);

// Returns invalid if the configuration names a model, because that overrides any other.
std::optional<Complaint> check_may_change(const HostSetting& host);

// Installs a checked model and puts it in use. Complaints: check_may_change(), denied, failure, and
// those of the daemon. After a complaint the previous model is in use.
OrComplaint<ActionReport> install_model(const CommonOptions& options, const HostSetting& host,
                                        std::string_view text);
// Puts the previous model, or the package's, in use again. Complaints: those of install_model(),
// and failure if none is installed.
OrComplaint<ActionReport> roll_back_model(const CommonOptions& options, const HostSetting& host);

// Errors: invalid, if the model uses columns of traces, which the daemon does not have.
Status check_for_daemon(const Model& model, const std::string& name);

// Prints what was changed on standard output, or the complaint on standard error. Returns the exit
// code.
int print_change(const OrComplaint<ActionReport>& change, const CommonOptions& options);

}  // namespace cgphase
