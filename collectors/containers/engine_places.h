// Finds the directories in which engines keep their files: the usual ones, those that the engines'
// configuration names, and those that a running Docker was started with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "collectors/containers/host_files.h"

namespace cgphase {

// Owned and used by one thread.
class EnginePlaces {
 public:
  EnginePlaces(const HostFiles& files, std::string proc_root)
      : files_(files), proc_root_(std::move(proc_root)) {}

  // Of the engine that this user runs, the likeliest first. Empty for a user without a home.
  std::vector<std::string> docker(uid_t owner) const;  // DIR/containers/ID/config.v2.json
  std::vector<std::string> running_docker(uid_t owner);  // reads the names of all processes
  std::vector<std::string> podman(uid_t owner) const;    // DIR/db.sql, DIR/overlay-containers
  std::vector<std::string> containerd(uid_t owner) const;  // DIR/io.containerd.metadata.v1.bolt
  std::vector<std::string> containerd_tasks(uid_t owner) const;  // DIR/NAMESPACE/ID

  // Whether this user has, or may have, an engine here: one of the directories in which engines
  // keep data, state or configuration, or a running Docker. True for other users than root, whose
  // homes may be hidden.
  bool any(uid_t owner);

  // Forgets the running Dockers, so that they are searched again.
  void forget() { searched_ = false; }

 private:
  std::string home_of(uid_t owner) const;
  // Where engines of this user keep data (/var/lib), state (/run) and configuration (/etc).
  struct Base {
    std::string data, run, configuration;
  };
  Base base_of(uid_t owner) const;
  void search_dockers();
  // What `key` of a configuration file names, then the usual directory.
  std::vector<std::string> place_and_usual(uid_t owner, const char* file, const char* key,
                                           const char* usual) const;
  std::string configured(const std::string& file, uid_t owner, const char* key) const;

  const HostFiles& files_;
  std::string proc_root_;
  bool searched_ = false;
  std::vector<std::pair<uid_t, std::string>> dockers_;  // the owner, and its data-root
};

}  // namespace cgphase
