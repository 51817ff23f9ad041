// A plot of a live container, from the history that the daemon keeps of it.
#pragma once

#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "cli/daemon_client.h"
#include "cli/options.h"

namespace cgphase {

struct ContainerPlotOptions {
  std::string container;    // name or id
  std::string from, until;  // as people write times; empty: the last hour, now
};

// Asks the daemon and draws. Complaints: usage (a time that is none, too long a time), those of
// ask_daemon (3 no such container, 4 no daemon), invalid (nothing was recorded in that time).
std::expected<std::string, Complaint> plot_container(const ContainerPlotOptions& options,
                                                     const CommonOptions& common);

// The picture of replies to `history`, at least one, in the order of time; the daemon's model has
// `phase_count` phases. What a reply of another version lacks is absent in the picture. Complaints:
// invalid (no points).
std::expected<std::string, Complaint> draw_history(std::span<const nlohmann::json> replies,
                                                   int phase_count);

}  // namespace cgphase
