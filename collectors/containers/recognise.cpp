#include "collectors/containers/recognise.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::size_t kIdDigits = 64;
constexpr std::size_t kShortIdDigits = 12;

constexpr std::string_view kKubelet = "managed by kubelet";
// The cgroupfs drivers use these names for the cgroup above their containers.
constexpr std::string_view kPodmanParent = "libpod_parent";
constexpr std::string_view kDockerParent = "docker";
// Proxmox VE numbers its containers and virtual machines.
constexpr std::string_view kProxmoxContainers = "/lxc", kProxmoxMachines = "/qemu.slice";
constexpr std::string_view kPayload = "libpod-payload-";
constexpr std::string_view kCrunDefault = "container";

// A last path element of `prefix` + 64 hex digits + `suffix`.
struct IdPattern {
  std::string_view prefix, suffix;
  Engine engine;
};
constexpr std::array<IdPattern, 9> kIdPatterns = {{
    {"docker-", ".scope", Engine::docker},
    {"libpod-", ".scope", Engine::podman},
    {kPayload, "", Engine::podman},           // quadlet, --cgroups=split
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

bool is_nomads(std::string_view path) {
  return path.starts_with("/nomad.slice") || path == "/nomad" || path.starts_with("/nomad/");
}

bool is_slurms(std::string_view path) {
  return path.find("slurmstepd.scope/") != std::string_view::npos;
}

// The manager to whose tree the path belongs; empty if to none.
std::string manager_of(std::string_view path) {
  if (is_kubelets(path)) return std::string(kKubelet);
  if (is_nomads(path)) return "managed by Nomad";
  return is_slurms(path) ? "managed by Slurm" : "";
}

Recognised by_id(Engine engine, std::string_view id) {
  return {engine, std::string(id), std::string(id.substr(0, kShortIdDigits)), "", false};
}

Recognised by_name(Engine engine, std::string_view id) {
  // systemd writes '-' in a machine's name as \x2d.
  return {engine, std::string(id), unescape_name(id), "", false};
}

// A task of Nomad's own drivers: an allocation, which is a UUID, and the task's name.
std::optional<Recognised> nomad_task(std::string_view parent, std::string_view name) {
  constexpr std::size_t kUuid = 36;
  if (const auto inside = between(name, "", ".scope")) name = *inside;
  if (!is_nomads(parent) || name.size() <= kUuid + 1 || name[kUuid] != '.' ||
      name.substr(0, kUuid).find_first_not_of("0123456789abcdef-") != std::string_view::npos)
    return std::nullopt;
  return Recognised{Engine::nomad, std::string(name), std::string(name.substr(kUuid + 1)), "",
                    false};
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
      one.in_unit = pattern.prefix == kPayload && is_systemd_unit(parent);
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
  if (parent == kProxmoxContainers && is_plain_name(name)) return by_name(Engine::lxc, name);
  if (const auto machine = between(name, "", ".scope");
      machine && parent == kProxmoxMachines && parse_u64(*machine))
    return Recognised{Engine::qemu, std::string(*machine), std::string(*machine),
                      "a virtual machine", false};
  if (const auto nspawn = between(name, "systemd-nspawn@", ".service"))
    return by_name(Engine::nspawn, *nspawn);
  // machined names libvirt's machines too; a virtual machine is no container.
  if (const auto machine = between(name, "machine-", ".scope"))
    return machine->starts_with("qemu\\x2d") || machine->starts_with("lxc\\x2d")
               ? std::nullopt
               : std::optional(by_name(Engine::nspawn, *machine));
  if (between(name, "job_", "") && last_element(parent).ends_with("slurmstepd.scope"))
    return Recognised{Engine::slurm, std::string(name), std::string(name), "", false};
  return nomad_task(parent, name);
}

// crun's cgroup inside that of the container. In a scope, an annotation can give it any name.
std::optional<Recognised> inside_podman(std::string_view parent, std::string_view name) {
  if (name != kCrunDefault && !parent.ends_with(".scope")) return std::nullopt;
  std::optional<Recognised> one = container_by_id(parent_of(parent), last_element(parent));
  if (!one || one->engine != Engine::podman) return std::nullopt;
  one->inside_scope = true;
  return one;
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
  if (!result) result = inside_podman(parent, name);
  if (!result) result = container_by_name(parent, name);
  if (!result) result = by_include(path, name, include);
  if (!result) return result;
  if (std::string manager = manager_of(path); !manager.empty())
    result->hands_off = std::move(manager);
  return result;
}

bool is_engine_container(std::string_view path) {
  const auto match = recognise_path(path, {});
  return match && match->engine != Engine::slurm && match->engine != Engine::nomad;
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
