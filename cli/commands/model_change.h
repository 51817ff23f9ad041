// Changing the model that this host uses: the files below its state directory, and the daemon that
// is told, where one runs. All of it or nothing.
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

// What the daemon that answers works with, or what it would where none does.
struct HostSetting {
  bool running = false;         // a daemon answers, and it is that of `state_dir`
  std::string state_dir;
  std::string model;            // that it uses; without one the installed one, or the package's
  std::string model_set_at;     // where the configuration names one; empty: it does not
  std::string policy = "phase";
  std::optional<double> risk;             // absent: the shipped one
  std::optional<double> at_risk_ratio;    // the same
};

// `state_dir` of a daemon that does not run; empty: the daemon's, or /var/lib/cgphase where nobody
// answers. Complaints: those of ask_daemon but for unreachable, and of what is not there.
OrComplaint<HostSetting> host_setting(const CommonOptions& options, const std::string& state_dir);

// Invalid where the configuration names a model, which goes before any other.
std::optional<Complaint> check_may_change(const HostSetting& host);

// Puts a model, which was checked, in use. Complaints: check_may_change(), denied, failure, and
// what the daemon says. Then all is as before.
OrComplaint<ActionReport> install_model(const CommonOptions& options, const HostSetting& host,
                                        std::string_view text);
// The one before, or the package's, is in use again. Complaints as install_model(), and failure
// where none is installed.
OrComplaint<ActionReport> roll_back_model(const CommonOptions& options, const HostSetting& host);

// What the daemon could not live with: columns of traces.
Status check_for_daemon(const Model& model, const std::string& name);

// What was changed, on standard output, or why not. Returns the exit code.
int print_change(const OrComplaint<ActionReport>& change, const CommonOptions& options);

}  // namespace cgphase
