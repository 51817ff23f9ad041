// What an administrator holds cgphase back from: a pause, or a mode below the configured one. It
// lasts until it is taken back, through restarts of the container and of the daemon; what lets
// cgphase do more than the configuration says never gets here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/config.h"
#include "base/result.h"
#include "collectors/containers/container_info.h"

namespace cgphase {

class Holds {
 public:
  Holds() = default;  // kept in memory alone
  explicit Holds(std::string path) : path_(std::move(path)) {}
  // What `path` holds; none where there is no such file. Errors: io, denied, and invalid where the
  // file is damaged.
  static Result<Holds> load(const std::string& path);

  struct Hold {
    bool paused = false;
    std::optional<Mode> at_most;  // absent: as far as the configuration goes
  };
  // A container is the same one after a restart where engine and name are.
  Hold of(const ContainerInfo& container) const;
  std::optional<Mode> host() const { return host_; }

  void set(const ContainerInfo& container, Hold hold);
  void set_host(std::optional<Mode> at_most) { host_ = at_most; }
  void clear_modes();  // pauses stay, and what holds the host since they could not be read
  // What was held cannot be read, and may have been everybody: until an administrator says more the
  // host is observed.
  void lose();
  void end_loss() { lost_ = false; }
  // Waits for the disk. After an error what was set holds until this process ends.
  Status save() const;

 private:
  std::string path_;  // empty: in memory alone
  std::optional<Mode> host_;
  bool lost_ = false;
  std::map<std::string, Hold> containers_;  // by "engine:name", printable
};

}  // namespace cgphase
