#include "collectors/containers/layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/file.h"
#include "cgroupfs/kernel_text.h"
#include "collectors/containers/engine_files.h"

namespace cgphase {
namespace {

CgroupPath parent_path(const CgroupPath& path) { return path.substr(0, path.rfind('/')); }

// True if a file of the engine describes it.
bool is_known(const Recognised& match, const std::string& engine_root) {
  ContainerInfo container;
  container.engine = match.engine;
  container.engine_id = match.engine_id;
  read_engine_files(engine_root, container);
  return !container.name.empty() || !container.image.empty() || !container.labels.empty();
}

// As sd_booted().
bool systemd_runs(const std::string& root) {
  struct stat directory{};
  return ::lstat((root + "/run/systemd/system").c_str(), &directory) == 0 &&
         S_ISDIR(directory.st_mode);
}

// True if a limit of CPU or memory is set.
bool has_limits(int directory_fd, const std::string& above) {
  for (const char* const file : {"cpu.max", "memory.max", "memory.high"}) {
    const auto text = read_file_at(directory_fd, (above + file).c_str(), kKernelTextBytes);
    if (text && !text->starts_with("max")) return true;
  }
  return false;
}

// The owner of the directory above a cgroup, or root in a container around it, can give it any
// container's id. Engine metadata of that id is used only if root or this process's user owns that
// directory and no container is around it.
bool is_made_by_root(int directory_fd, bool inside_scope) {
  struct stat above{};
  return ::fstatat(directory_fd, inside_scope ? "../.." : "..", &above, 0) == 0 &&
         (above.st_uid == 0 || above.st_uid == ::geteuid());
}

}  // namespace

bool has_processes(int directory_fd, const char* file) {
  const auto processes = read_file_at(directory_fd, file, kKernelTextBytes);
  return processes ? !processes->empty() : processes.error().kind == ErrorKind::invalid;
}

bool represents_parent(const CgroupPath& path, const Recognised& match, int directory_fd,
                       const std::string& engine_root) {
  if (!match.inside_scope && !match.in_pod) return false;
  if (has_processes(directory_fd, "../cgroup.procs")) return false;
  if (match.inside_scope) return has_limits(directory_fd, "") || !has_limits(directory_fd, "../");
  const auto above = recognise_path(parent_path(path), {});
  return !above || !is_known(*above, engine_root);
}

CgroupPath container_around(const CgroupPath& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1))
    if (is_engine_container(path.substr(0, end))) return path.substr(0, end);
  return {};
}

ContainerInfo describe_container(CgroupId id, const CgroupPath& path, Recognised&& match,
                                 bool for_parent, int directory_fd,
                                 const std::string& engine_root) {
  ContainerInfo container;
  container.id = id;
  container.path = path;
  container.engine = match.engine;
  container.engine_id = std::move(match.engine_id);
  container.name = std::move(match.name);
  container.hands_off = std::move(match.hands_off);
  container.systemd_unit = is_systemd_unit(path) && systemd_runs(engine_root);
  const CgroupPath above = parent_path(path);
  container.owner = for_parent ? parent_path(above) : above;
  const bool nested = is_in_container(for_parent ? parent_path(above) : above);
  container.made_by_root = !nested && is_made_by_root(directory_fd, match.inside_scope);
  if (container.made_by_root) read_engine_files(engine_root, container);
  if (container.engine == Engine::cgroup) read_attributes(directory_fd, container);
  return container;
}

}  // namespace cgphase
