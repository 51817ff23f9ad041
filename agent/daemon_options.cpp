#include <utility>

#include "agent/daemon.h"

namespace cgphase {

Result<Config> effective_config(const DaemonOptions& options) {
  ConfigSource source;
  if (options.config_path) {
    source.file = *options.config_path;
    source.must_exist = true;
  }
  Result<Config> config = load_config(source);
  if (!config) return config;
  for (const DaemonOptions::Override& one : options.overrides)
    if (Status set = override_config(*config, one.key, one.value, one.option); !set)
      return std::unexpected(set.error());
  return config;
}

}  // namespace cgphase
