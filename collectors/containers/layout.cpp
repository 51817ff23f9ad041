#include "collectors/containers/layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/parse.h"
#include "cgroupfs/kernel_text.h"

namespace cgphase {
namespace {

CgroupPath parent_path(const CgroupPath& path) { return path.substr(0, path.rfind('/')); }

// True if a file of the engine describes it.
bool is_known(const Recognised& match, EngineFiles& files) {
  ContainerInfo container;
  container.engine = match.engine;
  container.engine_id = match.engine_id;
  files.describe(container, 0);
  return !container.name.empty() || !container.image.empty() || !container.labels.empty();
}

// The limits of CPU and memory that are set. `above` is "" or "../".
std::vector<std::string> limits_of(int directory_fd, const std::string& above) {
  std::vector<std::string> limits;
  for (const char* const file : {"cpu.max", "memory.max", "memory.high"}) {
    const auto text = read_file_at(directory_fd, (above + file).c_str(), kKernelTextBytes);
    if (text && !text->starts_with("max")) limits.push_back(file + (" " + *text));
  }
  return limits;
}

// The owner of the directory above a cgroup, or root in a container around it, can give it any
// container's id. Only files of that owner are used, and none if a container is around it. Root, or
// the user of this process, is 0.
std::optional<uid_t> creator_of(int directory_fd, bool inside_scope) {
  struct stat above{};
  if (::fstatat(directory_fd, inside_scope ? "../.." : "..", &above, 0) != 0) return std::nullopt;
  return above.st_uid == ::geteuid() ? 0 : above.st_uid;
}

// The last path element without "-N"; empty if it has no such end.
std::string_view without_number(std::string_view path) {
  const std::size_t dash = path.rfind('-');
  if (dash == std::string_view::npos || path.find('/', dash) != std::string_view::npos) return {};
  return parse_u64(path.substr(dash + 1)) ? path.substr(0, dash) : std::string_view{};
}

}  // namespace

bool has_processes(int directory_fd, const char* file) {
  const auto processes = read_file_at(directory_fd, file, kKernelTextBytes);
  return processes ? !processes->empty() : processes.error().kind == ErrorKind::invalid;
}

std::optional<bool> is_populated(int directory_fd, const std::string& below) {
  const auto events = read_file_at(directory_fd, (below + "/cgroup.events").c_str(),
                                   kKernelTextBytes);
  return events ? scan_cgroup_events(*events).populated : std::nullopt;
}

bool represents_parent(const CgroupPath& path, const Recognised& match, int directory_fd,
                       EngineFiles& files) {
  if (!match.inside_scope && !match.in_pod) return false;
  if (has_processes(directory_fd, "../cgroup.procs")) return false;
  if (match.inside_scope) {
    const auto inner = limits_of(directory_fd, ""), outer = limits_of(directory_fd, "../");
    if (path.ends_with("/container")) return !inner.empty() || outer.empty();
    return !inner.empty() && (outer.empty() || inner == outer);
  }
  const auto above = recognise_path(parent_path(path), {});
  return !above || !is_known(*above, files);
}

bool unit_has_limits(int directory_fd) {
  return limits_of(directory_fd, "").empty() && !limits_of(directory_fd, "../").empty();
}

std::optional<Recognised> recognise_task(const CgroupPath& path, const EngineFiles& files) {
  const std::size_t slash = path.find('/', 1);
  if (slash == CgroupPath::npos || path.find('/', slash + 1) != CgroupPath::npos)
    return std::nullopt;
  const std::string space = path.substr(1, slash - 1), id = path.substr(slash + 1);
  if (space.ends_with(".slice") || !files.has_task(space, id)) return std::nullopt;
  return Recognised{Engine::containerd, id, id, "", false};
}

CgroupPath path_left_over(const CgroupPath& path, const Recognised& match, int root_fd,
                          const EngineFiles& files) {
  const std::string_view base = without_number(path);
  const std::string_view name = without_number(match.engine_id);
  if (match.engine != Engine::lxc || base.empty() || name.empty()) return {};
  if (files.has_lxc(match.engine_id)) return {};
  const auto populated = is_populated(root_fd, "." + std::string(base));
  const bool left_over = populated ? !*populated : files.has_lxc(std::string(name));
  return left_over ? CgroupPath(base) : CgroupPath();
}

CgroupPath container_around(const CgroupPath& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1))
    if (is_engine_container(path.substr(0, end))) return path.substr(0, end);
  return {};
}

ContainerInfo describe_container(CgroupId id, const CgroupPath& path, Recognised&& match,
                                 bool for_parent, int directory_fd, EngineFiles& files) {
  ContainerInfo container;
  container.id = id;
  container.path = path;
  container.engine = match.engine;
  container.engine_id = std::move(match.engine_id);
  container.name = std::move(match.name);
  container.hands_off = std::move(match.hands_off);
  container.systemd_unit = is_systemd_unit(path) && files.systemd_runs();
  const CgroupPath above = parent_path(path);
  container.owner = for_parent ? parent_path(above) : above;
  const bool nested = is_in_container(for_parent ? parent_path(above) : above);
  const auto creator = creator_of(directory_fd, match.inside_scope);
  container.made_by_root = !nested && creator == 0;
  if (!nested && creator) files.describe(container, *creator);
  if (container.engine == Engine::cgroup) read_attributes(directory_fd, container);
  return container;
}

}  // namespace cgphase
