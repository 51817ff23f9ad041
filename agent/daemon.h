// The body of cgphased: start-up as a checklist, one event loop, an orderly end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/config.h"
#include "protocol/protocol.h"

namespace cgphase {

struct DaemonOptions {
  // Absent: /etc/cgphase/cgphase.toml, if it exists.
  std::optional<std::string> config_path;
  // "--mode enforce" and the like; each overrides one key of the configuration.
  struct Override {
    std::string key, value, option;
  };
  std::vector<Override> overrides;
  bool once = false;  // one tick, the status as JSON on standard output, then the end
};

// The configuration with the overrides of the command line applied.
Result<Config> effective_config(const DaemonOptions& options);

// Runs until SIGTERM or SIGINT, then restores every limit. Each missing requirement is one sentence
// on standard error. A hard one ends the start; `status` reports a soft one. Returns an exit
// status; after `invalid` (6) a restart does not help.
Exit run_daemon(const DaemonOptions& options);

}  // namespace cgphase
