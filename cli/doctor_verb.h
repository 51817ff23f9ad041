// doctor: what this host offers cgphase, and what is in its way. Needs no daemon.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// As add_daemon_verbs(). Exit 1 when a finding is `fail`.
void add_doctor_verb(CLI::App& app, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
