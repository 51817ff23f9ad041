#include "collectors/containers/engine_files.h"

#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "collectors/containers/bolt_file.h"
#include "collectors/containers/podman_database.h"

namespace cgphase {
namespace {

using Json = nlohmann::json;

// Of containers/storage. Each keeps its containers in its own directory.
constexpr const char* kStorageDrivers[] = {"overlay", "vfs", "btrfs", "zfs", "devicemapper"};
constexpr const char* kLxcContainers = "/var/lib/lxc/";
constexpr const char* kIncusContainers[] = {"/var/lib/incus/containers/",
                                            "/var/lib/lxd/containers/",
                                            "/var/snap/lxd/common/lxd/containers/"};
// Docker keeps its own containers in this namespace of containerd.
constexpr std::string_view kDockerSpace = "moby";
constexpr std::string_view kSablier = "sablier.enable";

constexpr std::string_view kAttributePrefix = "user.cgphase.";
constexpr std::size_t kAttributeListBytes = 4096;

Json parse(std::string_view text) { return Json::parse(text, nullptr, false); }

// The string at `key`; empty if it is missing or not a string.
std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto at = object.find(key);
  return at != object.end() ? *at : kNothing;
}

void set_text(std::string& field, std::string value) {
  if (!value.empty() && value.size() <= kMaxNameBytes) field = std::move(value);
}

void add_label(ContainerInfo& container, const std::string& key, std::string value) {
  if (key.empty() || key.size() > kMaxLabelBytes || value.size() > kMaxLabelBytes) return;
  if (container.labels.size() >= kMaxLabels && !container.labels.contains(key)) return;
  container.labels.insert_or_assign(key, std::move(value));
}

void add_labels(ContainerInfo& container, const Json& labels) {
  if (!labels.is_object()) return;
  for (const auto& [key, value] : labels.items())
    if (value.is_string()) add_label(container, key, value.get<std::string>());
}

// An id becomes part of a path, although it comes from a cgroup's name.
bool is_safe_element(std::string_view id) {
  return !id.empty() && id.size() <= kMaxNameBytes && id.front() != '.' &&
         id.find('/') == std::string_view::npos && id.find('\0') == std::string_view::npos;
}

// Docker with userns-remap keeps a whole tree of its own in DATA/UID.GID.
bool is_remapped(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos && parse_u64(name.substr(0, dot)) &&
         parse_u64(name.substr(dot + 1));
}

std::string joined(const std::vector<std::string>& places) {
  std::string text;
  for (const std::string& place : places) text += (text.empty() ? "" : ", ") + place;
  return text.empty() ? "the home of its user" : text;
}

// Sablier writes the limits of containers that it may.
void heed_sablier(ContainerInfo& container) {
  const auto label = container.labels.find(std::string(kSablier));
  if (label != container.labels.end() && label->second == "true" && container.hands_off.empty())
    container.hands_off = "managed by Sablier";
}

}  // namespace

void EngineFiles::describe(ContainerInfo& container, uid_t owner) {
  if (!is_safe_element(container.engine_id)) return;
  switch (container.engine) {
    case Engine::docker: describe_docker(container, owner); break;
    case Engine::podman:
    case Engine::crio: describe_podman(container, owner); break;
    case Engine::containerd:
    case Engine::kubernetes: describe_containerd(container, owner); break;
    case Engine::lxc: describe_lxc(container); break;
    case Engine::qemu: describe_machine(container); break;
    default: return;
  }
  // On a host without engines somebody made the cgroup, and nobody could give it labels.
  if (!container.labels_unknown.empty() && !places_.any(owner)) container.labels_unknown.clear();
  heed_sablier(container);
}

bool EngineFiles::has_task(const std::string& space, const std::string& id) const {
  if (!is_safe_element(space) || !is_safe_element(id)) return false;
  return std::ranges::any_of(places_.containerd_tasks(0), [&](const std::string& tasks) {
    return files_.exists(tasks + "/" + space + "/" + id, 0);
  });
}

bool EngineFiles::has_lxc(const std::string& name) const {
  if (!is_safe_element(name)) return false;
  return files_.exists(kLxcContainers + name, 0) ||
         std::ranges::any_of(kIncusContainers, [&](const char* place) {
           return files_.exists(place + name, 0);
         });
}

// A missing or oversized file is ignored.
bool EngineFiles::apply_file(const std::string& path, uid_t owner, Apply apply,
                             ContainerInfo& container) {
  const Result<std::string> text =
      files_.read(path, owner, owner == 0 ? kMaxEngineFileBytes : kMaxUserFileBytes);
  if (text) apply(*text, container);
  return text.has_value();
}

Result<std::string> EngineFiles::database(const std::string& path, uid_t owner) const {
  return files_.read(path, owner, owner == 0 ? kMaxDatabaseBytes : kMaxUserDatabaseBytes);
}

bool EngineFiles::read_docker(const std::vector<std::string>& places, ContainerInfo& container,
                              uid_t owner) {
  const std::string file = "/containers/" + container.engine_id + "/config.v2.json";
  for (const std::string& place : places) {
    if (apply_file(place + file, owner, apply_docker_config, container)) return true;
    for (const std::string& name : files_.names_in(place, owner))
      if (is_remapped(name) &&
          apply_file(place + "/" + name + file, owner, apply_docker_config, container))
        return true;
  }
  return false;
}

// With the cgroupfs driver, a container of containerd has the path of one of Docker.
void EngineFiles::describe_docker(ContainerInfo& container, uid_t owner) {
  std::vector<std::string> places = places_.docker(owner);
  if (read_docker(places, container, owner)) return;
  const std::vector<std::string> running = places_.running_docker(owner);
  if (read_docker(running, container, owner)) return;
  places.insert(places.end(), running.begin(), running.end());
  std::string space;
  ContainerInfo other = container;
  other.engine = Engine::containerd;
  if (read_task(other, owner, space) && space != kDockerSpace) {
    container.engine = Engine::containerd;
    return describe_containerd(container, owner);
  }
  container.labels_unknown = "no file of this container below " + joined(places) +
                             ": name Docker's data-root in daemon.json";
}

// CRI-O keeps its containers in the same storage, but has no database.
void EngineFiles::describe_podman(ContainerInfo& container, uid_t owner) {
  const std::vector<std::string> places = places_.podman(owner);
  for (const std::string& place : places)
    if (read_podman(place, container, owner)) return;
  container.labels_unknown = "no readable database of Podman that has this container in " +
                             joined(places) + ": name its graphroot in storage.conf";
}

// The JSON text of a container's configuration.
Result<std::string> EngineFiles::podman_config(const std::string& place, const std::string& id,
                                               uid_t owner) const {
  Result<std::string> config = failure(ErrorKind::not_found, "");
  if (auto sqlite = database(place + "/db.sql", owner))
    config = config_in_sqlite(std::move(*sqlite), id);
  if (config) return config;
  if (auto bolt = database(place + "/libpod/bolt_state.db", owner))
    config = config_in_bolt(std::move(*bolt), id);
  return config;
}

bool EngineFiles::read_podman(const std::string& place, ContainerInfo& container, uid_t owner) {
  const bool annotated = read_storage(place, container, owner);
  if (container.engine == Engine::crio) return annotated;
  Result<std::string> config = failure(ErrorKind::not_found, "");
  // Podman may write while the file is copied.
  for (int attempt = 0; attempt < 2 && !config; ++attempt)
    config = podman_config(place, container.engine_id, owner);
  if (!config || config->size() > kMaxEngineFileBytes) return false;
  apply_podman_config(*config, container);
  return true;
}

// True if the container's own file has its annotations.
bool EngineFiles::read_storage(const std::string& place, ContainerInfo& container, uid_t owner) {
  bool found = false;
  for (const char* driver : kStorageDrivers) {
    const std::string containers = place + "/" + driver + "-containers/";
    if (!files_.exists(containers, owner)) continue;
    found |= apply_file(containers + container.engine_id + "/userdata/config.json", owner,
                        apply_oci_config, container);
    // Containers that need not survive a crash have their own list: `--rm`, every Quadlet.
    for (const char* list : {"containers.json", "volatile-containers.json"})
      apply_file(containers + list, owner, apply_storage_list, container);
  }
  return found;
}

// The id does not contain its namespace, so that all are searched.
bool EngineFiles::read_task(ContainerInfo& container, uid_t owner, std::string& space) {
  for (const std::string& tasks : places_.containerd_tasks(owner))
    for (const std::string& name : files_.names_in(tasks, owner)) {
      const std::string file = tasks + "/" + name + "/" + container.engine_id + "/config.json";
      if (!apply_file(file, owner, apply_oci_config, container)) continue;
      space = name;
      return true;
    }
  return false;
}

// The running container's file has annotations. Labels are in the database alone.
void EngineFiles::describe_containerd(ContainerInfo& container, uid_t owner) {
  std::string space;
  const bool running = read_task(container, owner, space);
  bool has_database = false;
  for (const std::string& place : running ? places_.containerd(owner) : std::vector<std::string>{})
    if (auto metadata = database(place + "/io.containerd.metadata.v1.bolt/meta.db", owner)) {
      has_database = true;
      if (apply_containerd_database(std::move(*metadata), space, container)) return;
    }
  if (!running || has_database)
    container.labels_unknown = "containerd's files in " +
                               joined(running ? places_.containerd(owner)
                                              : places_.containerd_tasks(owner)) +
                               " do not have this container";
}

// LXC and Incus use the same path in the cgroup tree. The containers of Proxmox VE have a number,
// and a host name for people. LXC's own file is on the local disk, that of Proxmox in a cluster.
void EngineFiles::describe_lxc(ContainerInfo& container) {
  const std::string& id = container.engine_id;
  const bool numbered = parse_u64(id).has_value();
  if (numbered && apply_file(kLxcContainers + id + "/config", 0, apply_machine_config, container) &&
      container.name != id)
    return;
  if (numbered &&
      apply_file("/etc/pve/lxc/" + id + ".conf", 0, apply_machine_config, container))
    return;
  if (files_.exists(kLxcContainers + id, 0)) return;
  for (const char* place : kIncusContainers)
    if (files_.exists(place + id, 0)) container.engine = Engine::incus;
}

void EngineFiles::describe_machine(ContainerInfo& container) {
  apply_file("/etc/pve/qemu-server/" + container.engine_id + ".conf", 0, apply_machine_config,
             container);
}

void apply_docker_config(std::string_view json, ContainerInfo& container) {
  const Json config = parse(json);
  std::string name = text_at(config, "Name");
  if (name.starts_with('/')) name.erase(0, 1);
  set_text(container.name, std::move(name));
  set_text(container.image, text_at(member(config, "Config"), "Image"));
  add_labels(container, member(member(config, "Config"), "Labels"));
}

void apply_storage_list(std::string_view json, ContainerInfo& container) {
  const Json list = parse(json);
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    if (text_at(entry, "id") != container.engine_id) continue;
    const Json& names = member(entry, "names");
    if (names.is_array() && !names.empty() && names.front().is_string())
      set_text(container.name, names.front().get<std::string>());
    // The metadata are JSON text in a JSON string.
    const Json metadata = parse(text_at(entry, "metadata"));
    set_text(container.image, text_at(metadata, "image-name"));
    return;
  }
}

void apply_oci_config(std::string_view json, ContainerInfo& container) {
  const Json config = parse(json);
  const Json& notes = member(config, "annotations");
  add_labels(container, notes);
  add_labels(container, parse(text_at(notes, "io.kubernetes.cri-o.Labels")));
  for (const char* key : {"io.kubernetes.container.name", "io.kubernetes.cri.container-name",
                          "nerdctl/name"})
    set_text(container.name, text_at(notes, key));
  for (const char* key : {"io.kubernetes.cri-o.ImageName", "io.kubernetes.cri.image-name",
                          "org.opencontainers.image.ref.name"})
    set_text(container.image, text_at(notes, key));
}

void apply_podman_config(std::string_view json, ContainerInfo& container) {
  const Json config = parse(json);
  set_text(container.name, text_at(config, "name"));
  set_text(container.image, text_at(config, "rootfsImageName"));
  add_labels(container, member(config, "labels"));
}

bool apply_containerd_database(std::string database, const std::string& space,
                               ContainerInfo& container) {
  const Result<BoltFile> file = BoltFile::parse(std::move(database));
  if (!file) return false;
  std::optional<BoltFile::Bucket> at = file->root();
  for (const std::string& name : {std::string("v1"), space, std::string("containers"),
                                  container.engine_id})
    if (at) at = file->bucket(*at, name);
  if (!at) return false;
  if (const auto image = file->value(*at, "image"); image && image->size() <= kMaxNameBytes)
    set_text(container.image, std::string(*image));
  if (const auto labels = file->bucket(*at, "labels"))
    file->each(*labels, [&](std::string_view key, std::optional<std::string_view> value) {
      // Many entries can claim the same bytes, so that long ones are not copied.
      if (value && value->size() <= kMaxLabelBytes && key.size() <= kMaxLabelBytes)
        add_label(container, std::string(key), std::string(*value));
      return true;
    });
  if (const auto name = container.labels.find("nerdctl/name"); name != container.labels.end())
    set_text(container.name, name->second);
  return true;
}

// What follows a line in brackets belongs to a snapshot of the machine.
void apply_machine_config(std::string_view text, ContainerInfo& container) {
  std::string_view line;
  while (next_line(text, line)) {
    line = trim(line);
    if (line.starts_with('[')) return;
    for (const std::string_view key : {"lxc.uts.name", "hostname", "name"}) {
      if (!line.starts_with(key)) continue;
      const std::string_view rest = trim(line.substr(key.size()));
      if (rest.starts_with('=') || rest.starts_with(':'))
        set_text(container.name, std::string(trim(rest.substr(1))));
    }
  }
}

void read_attributes(int directory_fd, ContainerInfo& container) {
  std::array<char, kAttributeListBytes> list;
  const ssize_t size = ::flistxattr(directory_fd, list.data(), list.size());
  if (size <= 0) return;  // none, too many, or a file system without them
  std::vector<char> value(kMaxLabelBytes);
  std::string_view names(list.data(), static_cast<std::size_t>(size));
  while (!names.empty()) {
    const std::string name(names.substr(0, names.find('\0')));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (!name.starts_with(kAttributePrefix)) continue;
    const ssize_t length = ::fgetxattr(directory_fd, name.c_str(), value.data(), value.size());
    if (length < 0) continue;
    std::string text(value.data(), static_cast<std::size_t>(length));
    const std::string key = name.substr(kAttributePrefix.size());
    if (key == "name") set_text(container.name, std::move(text));
    else if (key == "image") set_text(container.image, std::move(text));
    else add_label(container, "cgphase." + key, std::move(text));
  }
}

}  // namespace cgphase
