// doctor: shows what this host lacks, what that costs and how to fix it. Needs no daemon.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/config_check.h"
#include "cli/commands/doctor.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/run_program.h"

namespace cgphase {
namespace {

// What only the daemon knows: which containers' labels it could not read.
std::vector<Finding> examine_daemon(const CommonOptions& options) {
  const auto status = ask_for<StatusReport>(options.socket, StatusRequest{});
  if (!status) return {{Level::warn, "daemon", status.error().text, ""}};
  std::vector<Finding> findings = {
      {Level::ok, "daemon",
       "answers, version " + status->version + ", mode " + to_string(status->mode), ""}};
  for (const SourceReport& source : status->sources)
    if (source.name == kEngineFilesSource && !source.present)
      findings.push_back({Level::warn, source.name, source.detail,
                          "`cgphase mode enforce NAME` enforces one nevertheless"});
  return findings;
}

int doctor(const DoctorRoots& roots, const CommonOptions& options) {
  std::vector<Finding> findings = examine(roots);
  findings.push_back(examine_programs(find_daemon_program(),
                                      find_program("systemctl", "/usr/bin/systemctl")));
  findings.push_back(examine_clock());
  std::ranges::move(examine_daemon(options), std::back_inserter(findings));
  const int printed = print(kDoctorForm, doctor_reply(findings), options);
  return worst(findings) == Level::fail ? static_cast<int>(Exit::failure) : printed;
}

}  // namespace

void add_doctor_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  const auto roots = std::make_shared<DoctorRoots>();
  CLI::App* const verb =
      app.add_subcommand("doctor", "Show what this host lacks, what that costs and how to fix it");
  verb->footer("Exit status 1 if cgphase cannot work.");
  verb->add_option("--cgroup-root", roots->cgroup, "Cgroup v2 mount [/sys/fs/cgroup]")
      ->type_name("DIR");
  verb->add_option("--proc-root", roots->proc, "Directory to read as /proc")->type_name("DIR");
  verb->add_option("--sys-root", roots->sys, "Directory to read as /sys")->type_name("DIR");
  verb->add_option("--run-root", roots->run, "Directory to read as /run")->type_name("DIR");
  verb->add_option("--state-dir", roots->state, "Directory of the history [/var/lib/cgphase]")
      ->type_name("DIR");
  verb->callback([roots, &options, &exit_code] { exit_code = doctor(*roots, options); });
}

}  // namespace cgphase
