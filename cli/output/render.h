// Renders replies of the daemon as text. Pure functions of JSON (protocol/report.h makes it,
// docs/internals/protocol.md defines it). The text is for people and not stable. Every string is
// made printable here, too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/style.h"

namespace cgphase {

std::string render_status(const nlohmann::json& body, const TextStyle& style);
// The part of a status that changes every second: the lines above the containers of `top`.
std::string render_summary(const nlohmann::json& body, const TextStyle& style);
std::string render_list(const nlohmann::json& body, const TextStyle& style);
std::string render_show(const nlohmann::json& body, const TextStyle& style);
std::string render_explain(const nlohmann::json& body, const TextStyle& style);
std::string render_history(const nlohmann::json& body, const TextStyle& style);
std::string render_events(const nlohmann::json& body, const TextStyle& style);
std::string render_action(const nlohmann::json& body, const TextStyle& style);
std::string render_doctor(const nlohmann::json& body, const TextStyle& style);

// Cells of a container that several verbs share.
std::string mode_text(const nlohmann::json& container);
std::string phase_text(const nlohmann::json& container);
std::string next_text(const nlohmann::json& container);

}  // namespace cgphase
