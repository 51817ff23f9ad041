#include "collectors/containers/engine_places.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

constexpr std::size_t kConfigurationBytes = 256 * 1024;
constexpr std::size_t kPasswdBytes = 4 << 20;
constexpr std::size_t kProcessBytes = 64 * 1024;
constexpr std::size_t kMostProcessesSearched = 32768;
constexpr std::size_t kMostDockers = 16;
constexpr const char* kSnapDocker = "/var/snap/docker/common/var-lib-docker";

// Field `n` of a line of /etc/passwd.
std::string_view field(std::string_view line, int n) {
  for (; n > 0; --n) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return {};
    line.remove_prefix(colon + 1);
  }
  return line.substr(0, line.find(':'));
}

// The value of `key = "VALUE"` in a file of TOML. Tables do not matter: no key that is asked for
// has another meaning in another table.
std::string toml_text(std::string_view text, std::string_view key) {
  std::string_view line;
  while (next_line(text, line)) {
    line = trim(line);
    if (!line.starts_with(key)) continue;
    std::string_view rest = trim(line.substr(key.size()));
    if (!rest.starts_with('=')) continue;
    rest = trim(rest.substr(1));
    if (rest.size() < 2 || (rest.front() != '"' && rest.front() != '\'')) continue;
    const std::size_t end = rest.find(rest.front(), 1);
    if (end != std::string_view::npos) return std::string(rest.substr(1, end - 1));
  }
  return {};
}

// The value of one of the keys of a file of JSON.
std::string json_text(std::string_view text, const char* key) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return {};
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

bool is_absolute(std::string_view path) { return path.starts_with('/'); }

// The value of an option in a command line, whose words end with NUL: "--name VALUE" or
// "--name=VALUE".
std::string option(std::string_view command_line, std::string_view name) {
  for (bool next = false; !command_line.empty();) {
    const std::string_view word = command_line.substr(0, command_line.find('\0'));
    command_line.remove_prefix(std::min(command_line.size(), word.size() + 1));
    if (next) return std::string(word);
    next = word == name;
    if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=')
      return std::string(word.substr(name.size() + 1));
  }
  return {};
}

// The user of a process, if its real and its effective one are the same, and if it is not in a pid
// namespace of its own, as in a container.
std::optional<uid_t> user_of(const std::string& process) {
  const auto text = read_file(process + "/status", kProcessBytes);
  if (!text) return std::nullopt;
  std::optional<uid_t> user;
  std::string_view rest = *text, line, key, first, second;
  while (next_line(rest, line)) {
    if (!next_word(line, key) || !next_word(line, first)) continue;
    const bool more = next_word(line, second);
    if (key == "NSpid:" && more) return std::nullopt;
    if (key != "Uid:" || !more || first != second) continue;
    if (const auto number = parse_u64(first); number && *number <= UINT32_MAX)
      user = static_cast<uid_t>(*number);
  }
  return user;
}

void add(std::vector<std::string>& places, std::string place) {
  if (is_absolute(place) && std::ranges::find(places, place) == places.end())
    places.push_back(std::move(place));
}

}  // namespace

std::string EnginePlaces::home_of(uid_t owner) const {
  const auto users = files_.read("/etc/passwd", 0, kPasswdBytes);
  if (!users) return {};
  std::string_view rest = *users, line;
  while (next_line(rest, line))
    if (parse_u64(field(line, 2)) == owner && is_absolute(field(line, 5)))
      return std::string(field(line, 5));
  return {};
}

EnginePlaces::Base EnginePlaces::base_of(uid_t owner) const {
  if (owner == 0) return {"/var/lib", "/run", "/etc"};
  const std::string home = home_of(owner);
  if (home.empty()) return {};
  return {home + "/.local/share", "/run/user/" + std::to_string(owner), home + "/.config"};
}

std::string EnginePlaces::configured(const std::string& file, uid_t owner, const char* key) const {
  const auto text = files_.read(file, owner, kConfigurationBytes);
  if (!text) return {};
  return file.ends_with(".json") ? json_text(*text, key) : toml_text(*text, key);
}

std::vector<std::string> EnginePlaces::docker(uid_t owner) const {
  const Base base = base_of(owner);
  std::vector<std::string> places;
  if (base.data.empty()) return places;
  for (const char* key : {"data-root", "graph"})
    add(places, configured(base.configuration + "/docker/daemon.json", owner, key));
  add(places, base.data + "/docker");
  if (owner == 0) add(places, kSnapDocker);
  return places;
}

std::vector<std::string> EnginePlaces::running_docker(uid_t owner) {
  std::vector<std::string> places;
  if (!searched_) search_dockers();
  for (const auto& [user, place] : dockers_)
    if (user == owner) add(places, place);
  return places;
}

std::vector<std::string> EnginePlaces::podman(uid_t owner) const {
  return place_and_usual(owner, "/containers/storage.conf", "graphroot", "/containers/storage");
}

std::vector<std::string> EnginePlaces::containerd(uid_t owner) const {
  return place_and_usual(owner, "/containerd/config.toml", "root", "/containerd");
}

std::vector<std::string> EnginePlaces::place_and_usual(uid_t owner, const char* file,
                                                       const char* key, const char* usual) const {
  const Base base = base_of(owner);
  std::vector<std::string> places;
  if (base.data.empty()) return places;
  add(places, configured(base.configuration + file, owner, key));
  add(places, base.data + usual);
  return places;
}

std::vector<std::string> EnginePlaces::containerd_tasks(uid_t owner) const {
  constexpr const char* kTasks = "/io.containerd.runtime.v2.task";
  const Base base = base_of(owner);
  std::vector<std::string> places;
  if (base.data.empty()) return places;
  const std::string state =
      configured(base.configuration + "/containerd/config.toml", owner, "state");
  if (is_absolute(state)) add(places, state + kTasks);
  add(places, base.run + "/containerd" + kTasks);
  return places;
}

bool EnginePlaces::any(uid_t owner) {
  if (owner != 0 || !files_.is_absent(kSnapDocker) || !running_docker(0).empty()) return true;
  const Base base = base_of(0);
  for (const std::string& where : {base.data, base.run, base.configuration})
    for (const char* engine : {"/docker", "/containers", "/containerd", "/crio"})
      if (!files_.is_absent(where + engine)) return true;
  return false;
}

// A process can have any name and any arguments, but only those of the owner's own processes count.
void EnginePlaces::search_dockers() {
  searched_ = true;
  dockers_.clear();
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(proc_root_.c_str()), ::closedir);
  for (std::size_t seen = 0; listing && seen < kMostProcessesSearched; ++seen) {
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr || dockers_.size() == kMostDockers) return;
    if (!parse_u64(entry->d_name)) continue;
    const std::string process = proc_root_ + "/" + entry->d_name;
    const auto name = read_file(process + "/comm", kProcessBytes);
    if (!name || trim(*name) != "dockerd") continue;
    const std::optional<uid_t> user = user_of(process);
    const auto words = read_file(process + "/cmdline", kProcessBytes);
    if (!user || !words) continue;
    for (const char* key : {"--data-root", "--graph", "-g"})
      if (std::string place = option(*words, key); is_absolute(place))
        dockers_.emplace_back(*user, std::move(place));
    const std::string file = option(*words, "--config-file");
    if (!is_absolute(file)) continue;
    if (std::string place = configured(file, *user, "data-root"); is_absolute(place))
      dockers_.emplace_back(*user, std::move(place));
  }
}

}  // namespace cgphase
