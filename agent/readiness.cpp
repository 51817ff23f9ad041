#include "agent/readiness.h"

#include <cstdlib>
#include <optional>
#include <ranges>
#include <utility>

#include "base/text.h"
#include "control/lease/lease_file.h"

namespace cgphase {

std::unexpected<Refusal> refuse(const Error& error) {
  const Exit exit = error.kind == ErrorKind::denied ? Exit::denied
                    : error.kind == ErrorKind::io   ? Exit::failure
                                                    : Exit::invalid;
  return std::unexpected(Refusal{exit, error.text});
}

Started<CgroupRoot> ready_root(const Config& config) {
  // Only a root that somebody named is taken as it is; else what is mounted is found.
  const auto asked = config.origins.contains("cgroup_root")
                         ? std::optional<std::string>(config.cgroup_root)
                         : std::nullopt;
  Result<CgroupRoot> root = discover_cgroup_root(asked);
  if (!root) return refuse(root.error());
  if (!root->can_enforce && config.mode != Mode::observe)
    return std::unexpected(Refusal{Exit::invalid, root->reason});
  if (!root->writable && config.mode == Mode::enforce)
    return std::unexpected(Refusal{Exit::denied, root->reason});
  return *std::move(root);
}

Started<ChosenModel> ready_model(const Config& config) {
  Result<ChosenModel> model = choose_model(config);
  if (!model) return refuse(model.error());
  return *std::move(model);
}

Started<void> ready_runtime_dir(const Config& config, std::string_view given) {
  if (given.empty()) return {};
  for (const auto part : std::views::split(given, ':'))
    if (std::string_view(part) == config.runtime_dir) return {};
  return std::unexpected(Refusal{
      Exit::invalid, "runtime_dir is " + printable(config.runtime_dir) +
                         ", and if the daemon dies its unit restores limits from " +
                         printable(given) + " alone; leave runtime_dir out, or set it to that"});
}

Started<void> ready_runtime_dir(const Config& config) {
  const char* const given = std::getenv("RUNTIME_DIRECTORY");
  return ready_runtime_dir(config, given != nullptr ? given : "");
}

Started<void> check_readiness(const Config& config) {
  if (const auto ready = ready_runtime_dir(config); !ready) return ready;
  const Started<CgroupRoot> root = ready_root(config);
  if (!root) return std::unexpected(root.error());
  if (const auto model = ready_model(config); !model) return std::unexpected(model.error());
  // Who may write here opens the leases that there are.
  if (!root->can_enforce || !root->writable) return {};
  if (const Status leases = check_lease_file(config.runtime_dir); !leases)
    return refuse(leases.error());
  return {};
}

}  // namespace cgphase
