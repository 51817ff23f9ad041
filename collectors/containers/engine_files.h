// Reads names, images and labels from the files that engines keep on disk, without a socket or a
// daemon. Formats: docs/operations.md. The content is foreign: sizes are limited, and malformed
// files are ignored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/containers/container_info.h"
#include "collectors/containers/engine_places.h"
#include "collectors/containers/host_files.h"

namespace cgphase {

inline constexpr std::size_t kMaxEngineFileBytes = 4 << 20;
// A user can make many containers, and their files are read at once.
inline constexpr std::size_t kMaxUserFileBytes = 512 << 10;
inline constexpr std::size_t kMaxUserDatabaseBytes = 8 << 20;
inline constexpr std::size_t kMaxLabels = 128;
inline constexpr std::size_t kMaxLabelBytes = 4096;  // limit for key and value each
inline constexpr std::size_t kMaxNameBytes = 256;    // a longer name or image is ignored

// The files of all engines on this host. Owned and used by one thread.
class EngineFiles {
 public:
  // `root` is "/" except in tests; see HostFiles.
  EngineFiles(const std::string& root, const std::string& proc_root)
      : files_(root, proc_root), places_(files_, proc_root) {}
  EngineFiles(const EngineFiles&) = delete;
  EngineFiles& operator=(const EngineFiles&) = delete;

  // Adds the data on disk about `container` (engine and engine_id must be set), and corrects its
  // engine where only the files tell which one it is. Fields without data are unchanged.
  // `labels_unknown` is set if the engine has labels that could not be read. `owner` is the user
  // who could create the cgroup. Only this user's files are read, because anybody can name a cgroup
  // of their own by an id.
  void describe(ContainerInfo& container, uid_t owner);

  // Whether containerd runs a container of this name in this namespace: its cgroup is /SPACE/ID.
  bool has_task(const std::string& space, const std::string& id) const;
  // Whether LXC or Incus has a container of this name.
  bool has_lxc(const std::string& name) const;

  // As sd_booted().
  bool systemd_runs() const { return files_.exists("/run/systemd/system", 0); }

  // Searches running engines again at the next need.
  void forget() { files_.forget(), places_.forget(); }

 private:
  void describe_docker(ContainerInfo& container, uid_t owner);
  void describe_podman(ContainerInfo& container, uid_t owner);
  void describe_containerd(ContainerInfo& container, uid_t owner);
  void describe_lxc(ContainerInfo& container);
  void describe_machine(ContainerInfo& container);
  bool read_docker(const std::vector<std::string>& places, ContainerInfo& container, uid_t owner);
  Result<std::string> podman_config(const std::string& place, const std::string& id,
                                    uid_t owner) const;
  bool read_podman(const std::string& place, ContainerInfo& container, uid_t owner);
  bool read_storage(const std::string& place, ContainerInfo& container, uid_t owner);
  bool read_task(ContainerInfo& container, uid_t owner, std::string& space);
  using Apply = void (*)(std::string_view, ContainerInfo&);
  bool apply_file(const std::string& path, uid_t owner, Apply apply, ContainerInfo& container);
  Result<std::string> database(const std::string& path, uid_t owner) const;

  HostFiles files_;
  EnginePlaces places_;
};

// Reads the engine-neutral source: extended attributes of the cgroup directory. user.cgphase.name
// and user.cgphase.image are name and image. user.cgphase.X is the label "cgphase.X".
void read_attributes(int directory_fd, ContainerInfo& container);

// The parsers of these functions, for tests and the fuzzer.
void apply_docker_config(std::string_view json, ContainerInfo& container);
void apply_storage_list(std::string_view json, ContainerInfo& container);
void apply_oci_config(std::string_view json, ContainerInfo& container);
void apply_podman_config(std::string_view json, ContainerInfo& container);
// containerd's metadata, a bbolt database. False if it does not have the container.
bool apply_containerd_database(std::string database, const std::string& space,
                               ContainerInfo& container);
// The host name in a configuration of LXC ("lxc.uts.name = web") or Proxmox ("hostname: web", for a
// virtual machine "name: web").
void apply_machine_config(std::string_view text, ContainerInfo& container);

}  // namespace cgphase
