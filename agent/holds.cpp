#include "agent/holds.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "agent/report.h"
#include "base/file.h"
#include "base/text.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr int kFileSchema = 1;
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxHolds = 10'000;

std::string key_of(const ContainerInfo& container) {
  return std::string(engine_name(container.engine)) + ":" + escape_name(container.name);
}

bool empty(const Holds::Hold& hold) { return !hold.paused && !hold.at_most; }

// Absent and null are no mode; anything else that is none makes the file a damaged one.
bool read_mode(const json& object, const char* key, std::optional<Mode>& mode) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return true;
  if (found->is_string()) mode = parse_mode(found->get_ref<const std::string&>());
  return mode.has_value();
}

bool read_hold(const json& object, Holds::Hold& hold) {
  if (!object.is_object() || !read_mode(object, "mode", hold.at_most)) return false;
  const auto paused = object.find("paused");
  if (paused == object.end()) return true;
  hold.paused = paused->is_boolean() && paused->get<bool>();
  return paused->is_boolean();
}

json mode_json(const std::optional<Mode>& mode) {
  return mode ? json(to_string(*mode)) : json(nullptr);
}

}  // namespace

Result<Holds> Holds::load(const std::string& path) {
  Holds holds(path);
  const Result<std::string> text = read_file(path, kMaxFileBytes);
  if (!text) {
    if (text.error().kind == ErrorKind::not_found) return holds;
    return std::unexpected(text.error());
  }
  const json file = json::parse(*text, nullptr, false);
  const auto damaged = [&] {
    return failure(ErrorKind::invalid,
                   path + ": what an administrator asked for cannot be read from it");
  };
  if (!file.is_object() || file.value("schema", json()) != kFileSchema ||
      !read_mode(file, "host", holds.host_))
    return damaged();
  const json lost = file.value("lost", json(false));
  if (!lost.is_boolean()) return damaged();
  holds.lost_ = lost.get<bool>();
  const json containers = file.value("containers", json::object());
  if (!containers.is_object() || containers.size() > kMaxHolds) return damaged();
  for (const auto& [key, value] : containers.items())
    if (!read_hold(value, holds.containers_[key])) return damaged();
  return holds;
}

Holds::Hold Holds::of(const ContainerInfo& container) const {
  const auto found = containers_.find(key_of(container));
  return found == containers_.end() ? Hold{} : found->second;
}

void Holds::set(const ContainerInfo& container, Hold hold) {
  if (empty(hold)) containers_.erase(key_of(container));
  else containers_[key_of(container)] = hold;
}

void Holds::lose() {
  host_ = Mode::observe;
  lost_ = true;
}

void Holds::clear_modes() {
  if (!lost_) host_.reset();
  for (auto entry = containers_.begin(); entry != containers_.end();) {
    entry->second.at_most.reset();
    entry = empty(entry->second) ? containers_.erase(entry) : std::next(entry);
  }
}

Status Holds::save() const {
  if (path_.empty()) return {};
  if (containers_.size() > kMaxHolds)
    return failure(ErrorKind::invalid, path_ + ": too many containers are held back to keep them");
  json file = {{"schema", kFileSchema}, {"host", mode_json(host_)}, {"containers", json::object()}};
  if (lost_) file["lost"] = true;
  for (const auto& [key, hold] : containers_)
    file["containers"][key] = {{"paused", hold.paused}, {"mode", mode_json(hold.at_most)}};
  return replace_file(path_, file.dump(1) + "\n", 0640);
}

}  // namespace cgphase
