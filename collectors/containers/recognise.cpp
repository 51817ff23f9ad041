#include "collectors/containers/recognise.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::size_t kIdDigits = 64;
constexpr std::size_t kShortIdDigits = 12;

constexpr std::string_view kKubelet = "managed by kubelet";
// The cgroupfs drivers use these names for the cgroup above their containers.
constexpr std::string_view kPodmanParent = "libpod_parent";
constexpr std::string_view kDockerParent = "docker";

// A last path element of `prefix` + 64 hex digits + `suffix`.
struct IdPattern {
  std::string_view prefix, suffix;
  Engine engine;
};
constexpr std::array<IdPattern, 9> kIdPatterns = {{
    {"docker-", ".scope", Engine::docker},
    {"libpod-", ".scope", Engine::podman},
    {"libpod-payload-", "", Engine::podman},  // quadlet, --cgroups=split
    {"libpod-", "", Engine::podman},          // cgroupfs driver, below libpod_parent
    {"nerdctl-", ".scope", Engine::containerd},
    {"cri-containerd-", ".scope", Engine::containerd},
    {"crio-", ".scope", Engine::crio},
    {"crio-", "", Engine::crio},
    {"cri-containerd-", "", Engine::containerd},
}};

// Units that an include pattern may match, but that must never be limited.
constexpr auto kUntouchableUnits = std::to_array<std::string_view>({
    "sshd.service",      "ssh.service",
    "sshd@*.service",    "ssh@*.service",
    "docker.service",    "snap.docker.dockerd.service",
    "buildkit.service",  "containerd.service",
    "podman.service",    "podman@*.service",
    "crio.service",      "cri-docker.service",
    "kubelet.service",   "k3s*.service",
    "rke2-*.service",    "snap.microk8s.daemon-*.service",
    "incus*.service",    "lxc*.service",
    "lxd.service",       "snap.lxd.daemon.service",
    "libvirtd.service",  "virtqemud.service",
    "virtlxcd.service",  "cgphased.service",
    "cgphase-*.service", "systemd-*.service",
    "dbus*.service",
    "user@*.service",  // all services of a user, including rootless engines
});

bool is_hex_id(std::string_view text) {
  return text.size() == kIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// True if an engine accepts the text as a name, and it cannot leave a directory when it becomes
// part of a path.
bool is_plain_name(std::string_view text) {
  return !text.empty() && text.front() != '.' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_.-") == std::string_view::npos;
}

bool matches(const std::string& pattern, std::string_view text) {
  return ::fnmatch(pattern.c_str(), std::string(text).c_str(), FNM_PATHNAME | FNM_NOESCAPE) == 0;
}

// The text between `prefix` and `suffix`; it must not be empty.
std::optional<std::string_view> between(std::string_view text, std::string_view prefix,
                                        std::string_view suffix) {
  if (text.size() <= prefix.size() + suffix.size() || !text.starts_with(prefix) ||
      !text.ends_with(suffix))
    return std::nullopt;
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

std::string_view last_element(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

bool has_element(std::string_view path, std::string_view prefix) {
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1))
    if (path.substr(slash + 1).starts_with(prefix)) return true;
  return false;
}

// The kubelet's subtree starts at `kubepods`. Below its own cgroup root, as on a node that is a
// container, systemd's driver prepends the names of the slices above.
bool is_kubelets(std::string_view path) {
  constexpr std::string_view kPods = "kubepods";
  for (std::size_t at = path.find(kPods); at != std::string_view::npos;
       at = path.find(kPods, at + 1)) {
    if (at == 0) continue;
    const std::string_view element = path.substr(at, path.find('/', at) - at);
    if (path[at - 1] == '/' || (path[at - 1] == '-' && element.ends_with(".slice"))) return true;
  }
  return false;
}

Recognised by_id(Engine engine, std::string_view id) {
  return {engine, std::string(id), std::string(id.substr(0, kShortIdDigits)), "", false};
}

Recognised by_name(Engine engine, std::string_view id) {
  // systemd writes '-' in a machine's name as \x2d.
  return {engine, std::string(id), unescape_name(id), "", false};
}

// Monitors, intermediate cgroups, and cgroups that engines use for themselves.
bool is_excluded(std::string_view name) {
  return name == "init.scope" || name.ends_with(".slice") || name == "buildkit" ||
         name.starts_with("buildkit-") || name.starts_with("libpod-conmon-") ||
         name.starts_with("lxc.monitor") || name.starts_with("crio-conmon-");
}

// <prefix>-<id>.scope of a containerd client with its own prefix.
std::optional<Recognised> other_scope(std::string_view name) {
  const auto inside = between(name, "", ".scope");
  if (!inside || inside->size() <= kIdDigits + 1) return std::nullopt;
  const std::string_view id = inside->substr(inside->size() - kIdDigits);
  if ((*inside)[inside->size() - kIdDigits - 1] != '-' || !is_hex_id(id)) return std::nullopt;
  return by_id(Engine::containerd, id);
}

// A container in a pod under the cgroupfs driver. With its own --cgroup-parent, the pod above it
// looks like a container of Docker. The directory where Docker puts its own containers is no pod.
bool is_in_pod(Engine engine, std::string_view parent) {
  return engine == Engine::podman && is_hex_id(last_element(parent)) &&
         last_element(parent_of(parent)) != kDockerParent;
}

std::optional<Recognised> container_by_id(std::string_view parent, std::string_view name) {
  for (const IdPattern& pattern : kIdPatterns)
    if (const auto id = between(name, pattern.prefix, pattern.suffix); id && is_hex_id(*id)) {
      Recognised one = by_id(pattern.engine, *id);
      one.in_pod = is_in_pod(one.engine, parent);
      return one;
    }
  if (parent == "/default" && is_plain_name(name)) return by_id(Engine::containerd, name);
  if (!is_hex_id(name)) return other_scope(name);
  if (last_element(parent) == kPodmanParent) return std::nullopt;  // this is a pod
  // The cgroupfs driver uses /docker/ID, or ID below the --cgroup-parent.
  return by_id(is_kubelets(parent) ? Engine::kubernetes : Engine::docker, name);
}

std::optional<Recognised> container_by_name(std::string_view parent, std::string_view name) {
  if (const auto lxc = between(name, "lxc.payload.", "")) return by_name(Engine::lxc, *lxc);
  if (const auto nspawn = between(name, "systemd-nspawn@", ".service"))
    return by_name(Engine::nspawn, *nspawn);
  // machined names libvirt's machines too; a virtual machine is no container.
  if (const auto machine = between(name, "machine-", ".scope"))
    return machine->starts_with("qemu\\x2d") || machine->starts_with("lxc\\x2d")
               ? std::nullopt
               : std::optional(by_name(Engine::nspawn, *machine));
  if (between(name, "job_", "") && last_element(parent).ends_with("slurmstepd.scope"))
    return Recognised{Engine::slurm, std::string(name), std::string(name), "managed by Slurm",
                      false};
  return std::nullopt;
}

bool is_included(std::string_view path, std::span<const std::string> include) {
  return std::ranges::any_of(include, [&](const std::string& pattern) {
    const bool whole = pattern.find('/') != std::string::npos;
    return matches(pattern, whole ? path : last_element(path));
  });
}

std::string hands_off_unit(std::string_view path, std::string_view name) {
  if (has_element(path, "cgphase.slice/")) return "cgphase itself";
  for (const std::string_view unit : kUntouchableUnits)
    if (matches(std::string(unit), name)) return "a service that the system itself needs";
  return "";
}

std::optional<Recognised> by_include(std::string_view path, std::string_view name,
                                     std::span<const std::string> include) {
  if (!is_included(path, include)) return std::nullopt;
  // A pattern such as "*.service" must not include a monitor of containers.
  if (name.find("-monitor") != std::string_view::npos) return std::nullopt;
  const Engine engine = name.ends_with(".service") ? Engine::service : Engine::cgroup;
  return Recognised{engine, std::string(name), std::string(name), hands_off_unit(path, name),
                    false};
}

}  // namespace

std::optional<Recognised> recognise_path(std::string_view path,
                                         std::span<const std::string> include) {
  const std::string_view name = last_element(path);
  const std::string_view parent = parent_of(path);
  if (name.empty() || is_excluded(name)) return std::nullopt;
  std::optional<Recognised> result = container_by_id(parent, name);
  if (!result && name == "container") {
    result = container_by_id(parent_of(parent), last_element(parent));
    // Other engines do not use this layout.
    if (result && result->engine != Engine::podman) result.reset();
    if (result) result->inside_scope = true;
  }
  if (!result) result = container_by_name(parent, name);
  if (!result) result = by_include(path, name, include);
  if (result && is_kubelets(path)) result->hands_off = kKubelet;
  return result;
}

bool is_engine_container(std::string_view path) {
  const auto match = recognise_path(path, {});
  return match && match->engine != Engine::slurm;
}

bool is_in_container(std::string_view path) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = path.find('/', end + 1);
    if (is_engine_container(path.substr(0, end))) return true;
  }
  return false;
}

bool is_systemd_unit(std::string_view path) {
  return path.ends_with(".scope") || path.ends_with(".service");
}

}  // namespace cgphase
