// Plot of a live container, from the daemon's history.
#pragma once

#include <expected>
#include <span>
#include <string>

#include "cli/daemon_client.h"
#include "cli/options.h"

namespace cgphase {

struct ContainerPlotOptions {
  std::string container;    // name or id
  std::string from, until;  // times as parse_time() takes them; empty: the last hour, now
};

// Requests the history and draws it. Complaints: usage (not a time, or too long a time), those of
// ask_daemon (3 no such container, 4 no daemon), invalid (nothing was recorded in that time).
std::expected<std::string, Complaint> plot_container(const ContainerPlotOptions& options,
                                                     const CommonOptions& common);

// Draws replies to `history`, at least one, in order of time. The daemon's model has `phase_count`
// phases. Values that a reply lacks are absent in the picture. Complaints: invalid (no points).
std::expected<std::string, Complaint> draw_history(std::span<const HistoryReply> replies,
                                                   int phase_count);

}  // namespace cgphase
