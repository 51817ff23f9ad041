// Reading a reply that may be of another version: what is missing or of another type is absent,
// never an exception. Paths are JSON pointers ("/usage/cpu_cores"). Pure, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cgphase {

// null where there is nothing.
const nlohmann::json& view(const nlohmann::json& body, const char* path);
// An empty array where there is none.
const nlohmann::json& view_array(const nlohmann::json& body, const char* path);
// Printable; empty where there is none.
std::string view_text(const nlohmann::json& body, const char* path);
std::optional<double> view_number(const nlohmann::json& body, const char* path);
bool view_flag(const nlohmann::json& body, const char* path);

}  // namespace cgphase
