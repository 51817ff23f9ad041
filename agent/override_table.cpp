#include "agent/override_table.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "protocol/report.h"

namespace cgphase {
namespace {

using nlohmann::json;

// The first version of the file has no "since" and only modes below the configured one.
constexpr int kFileSchema = 1;
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;
constexpr std::int64_t kLatestSeconds = 9'000'000'000;  // the range of WallTime, in nanoseconds

std::string key_of(const ContainerInfo& container) {
  return std::string(to_string(container.engine)) + ":" + escape_name(container.name);
}

bool empty(const ModeRequest& mode) { return !mode.in_force(); }
bool empty(const Override& one) { return !one.paused && empty(one.mode); }

// An absent or null mode means no mode. Any other value that is not a mode makes the file damaged.
bool read_mode(const json& object, const char* key, const char* since, ModeRequest& request) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return true;
  if (!found->is_string()) return false;
  const auto mode = parse_mode(found->get_ref<const std::string&>());
  const json seconds = object.value(since, json(0));
  if (!mode || !seconds.is_number_integer() || seconds < 0 || seconds > kLatestSeconds)
    return false;
  request.lasting = {*mode, WallTime(std::chrono::seconds(seconds.get<std::int64_t>()))};
  return true;
}

bool read_override(const json& object, Override& one) {
  if (!object.is_object() || !read_mode(object, "mode", "since", one.mode)) return false;
  const auto paused = object.find("paused");
  if (paused == object.end()) return true;
  one.paused = paused->is_boolean() && paused->get<bool>();
  return paused->is_boolean();
}

void write_mode(const ModeRequest& request, const char* key, const char* since, json& object) {
  object[key] = nullptr;
  if (!request.lasting) return;
  object[key] = to_string(request.lasting->mode);
  object[since] = std::chrono::floor<std::chrono::seconds>(
                      request.lasting->since.time_since_epoch()).count();
}

}  // namespace

Result<OverrideTable> OverrideTable::load(const std::string& path) {
  OverrideTable table(path);
  const Result<std::string> text = read_file(path, kMaxFileBytes);
  if (!text) {
    if (text.error().kind == ErrorKind::not_found) return table;
    return std::unexpected(text.error());
  }
  const json file = json::parse(*text, nullptr, false);
  const auto damaged = [&] {
    return failure(ErrorKind::invalid, path + ": damaged, so the pauses and modes that "
                                              "`cgphase` commands set are lost");
  };
  if (!file.is_object() || file.value("schema", json()) != kFileSchema ||
      !read_mode(file, "host", "host_since", table.host_))
    return damaged();
  const json lost = file.value("lost", json(false));
  if (!lost.is_boolean()) return damaged();
  table.lost_ = lost.get<bool>();
  const json containers = file.value("containers", json::object());
  if (!containers.is_object() || containers.size() > kMostContainers) return damaged();
  for (const auto& [key, value] : containers.items())
    if (!read_override(value, table.containers_[key])) return damaged();
  return table;
}

Override OverrideTable::of(const ContainerInfo& container) const {
  const auto found = containers_.find(key_of(container));
  return found == containers_.end() ? Override{} : found->second;
}

Status OverrideTable::set(const ContainerInfo& container, const Override& one) {
  const std::string key = key_of(container);
  if (empty(one)) {
    containers_.erase(key);
    return {};
  }
  if (containers_.size() >= kMostContainers && !containers_.contains(key))
    return failure(ErrorKind::invalid,
                   std::to_string(kMostContainers) + " containers have a mode or a pause already; "
                   "take one back with `cgphase mode default NAME` or `cgphase resume NAME`");
  containers_[key] = one;
  return {};
}

std::size_t OverrideTable::forget_modes(const std::string& name) {
  std::size_t count = 0;
  for (auto entry = containers_.begin(); entry != containers_.end();) {
    auto& [key, one] = *entry;
    const bool meant = key.substr(key.find(':') + 1) == name && !empty(one.mode);
    if (meant) {
      one.mode = {};
      ++count;
    }
    entry = empty(one) ? containers_.erase(entry) : std::next(entry);
  }
  return count;
}

void OverrideTable::lose() {
  host_ = {.lasting = TimedMode{}, .until_restart = {}};
  lost_ = true;
}

Status OverrideTable::save() const {
  if (path_.empty()) return {};
  json file = {{"schema", kFileSchema}, {"containers", json::object()}};
  write_mode(host_, "host", "host_since", file);
  if (lost_) file["lost"] = true;
  for (const auto& [key, one] : containers_) {
    if (!one.paused && !one.mode.lasting) continue;
    json& entry = file["containers"][key] = {{"paused", one.paused}};
    write_mode(one.mode, "mode", "since", entry);
  }
  return replace_file(path_, file.dump(1) + "\n", 0640);
}

}  // namespace cgphase
