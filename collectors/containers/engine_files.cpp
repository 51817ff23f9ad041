#include "collectors/containers/engine_files.h"

#include <dirent.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"

namespace cgphase {
namespace {

using Json = nlohmann::json;

constexpr const char* kDockerContainers = "/var/lib/docker/containers/";
constexpr const char* kStorageContainers = "/var/lib/containers/storage/overlay-containers/";
constexpr const char* kContainerdTasks = "/run/containerd/io.containerd.runtime.v2.task/";
constexpr const char* kLxcContainers = "/var/lib/lxc/";
constexpr const char* kIncusContainers = "/var/lib/incus/containers/";

constexpr std::size_t kMaxNamespaces = 64;
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

// Reads a file and applies it. A missing or oversized file is ignored.
bool apply_file(const std::string& path, void (*apply)(std::string_view, ContainerInfo&),
                ContainerInfo& container) {
  const Result<std::string> text = read_file(path, kMaxEngineFileBytes);
  if (text) apply(*text, container);
  return text.has_value();
}

// The id does not contain its namespace, so that all are searched.
void read_containerd(const std::string& tasks, ContainerInfo& container) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(tasks.c_str()), ::closedir);
  if (!directory) return;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    if (++seen > kMaxNamespaces) return;
    const std::string file = tasks + entry->d_name + "/" + container.engine_id + "/config.json";
    if (apply_file(file, apply_oci_config, container)) return;
  }
}

// An id becomes part of a path, although it comes from a cgroup's name.
bool is_safe_element(std::string_view id) {
  return !id.empty() && id.size() <= kMaxNameBytes && id.front() != '.' &&
         id.find('/') == std::string_view::npos && id.find('\0') == std::string_view::npos;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

void read_engine_files(const std::string& engine_root, ContainerInfo& container) {
  if (!is_safe_element(container.engine_id)) return;
  const std::string root = engine_root == "/" ? "" : engine_root;
  switch (container.engine) {
    case Engine::docker:
      apply_file(root + kDockerContainers + container.engine_id + "/config.v2.json",
                 apply_docker_config, container);
      return;
    case Engine::podman:
    case Engine::crio:
      apply_file(root + kStorageContainers + container.engine_id + "/userdata/config.json",
                 apply_oci_config, container);
      // Containers that need not survive a crash have their own list: `--rm`, every Quadlet.
      for (const char* list : {"containers.json", "volatile-containers.json"})
        apply_file(root + kStorageContainers + list, apply_storage_list, container);
      return;
    case Engine::containerd:
    case Engine::kubernetes:
      return read_containerd(root + kContainerdTasks, container);
    case Engine::lxc:
      // LXC and Incus use the same path in the cgroup tree.
      if (!exists(root + kLxcContainers + container.engine_id) &&
          exists(root + kIncusContainers + container.engine_id))
        container.engine = Engine::incus;
      return;
    default: return;
  }
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
  for (const char* key : {"io.kubernetes.container.name", "io.kubernetes.cri.container-name",
                          "nerdctl/name"})
    set_text(container.name, text_at(notes, key));
  for (const char* key : {"io.kubernetes.cri-o.ImageName", "io.kubernetes.cri.image-name",
                          "org.opencontainers.image.ref.name"})
    set_text(container.image, text_at(notes, key));
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
