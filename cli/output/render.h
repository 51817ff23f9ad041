// Renders replies of the daemon as text. Pure. The text is for people and not stable. Every string
// is made printable here, too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/style.h"
#include "protocol/report.h"

namespace cgphase {

std::string render_status(const StatusReport& report, const TextStyle& style);
// The part of a status that changes every second: the lines above the containers of `top`.
std::string render_summary(const StatusReport& report, const TextStyle& style);
std::string render_list(const ListReply& reply, const TextStyle& style);
// `bursts` is the member of that name in the reply to `show`.
std::string render_show(const ContainerReport& report, const nlohmann::json& bursts,
                        const TextStyle& style);
std::string render_explain(const ExplainReply& reply, const TextStyle& style);
std::string render_history(const HistoryReply& reply, const TextStyle& style);
Result<std::string> render_events(const EventsReply& reply, const TextStyle& style);
std::string render_action(const ActionReport& report, const TextStyle& style);
std::string render_doctor(const nlohmann::json& body, const TextStyle& style);

// Cells of a container that several verbs share.
std::string mode_text(const ContainerReport& container);
std::string phase_text(const ContainerReport& container);
std::string next_text(const ContainerReport& container);

}  // namespace cgphase
