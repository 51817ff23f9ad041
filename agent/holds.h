// What an administrator asked of cgphase by command: pauses and modes. They last until they are
// taken back, through restarts of container, daemon and host (docs/configuration.md).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/config/config.h"
#include "base/clock.h"
#include "base/result.h"
#include "collectors/containers/container_info.h"

namespace cgphase {

struct AskedMode {
  Mode mode = Mode::observe;
  WallTime since;  // the epoch where an older version of cgphase kept it
};

// Nothing in it: as the configuration says.
struct ModeRequest {
  std::optional<AskedMode> lasting;
  std::optional<AskedMode> until_restart;  // replaces `lasting` while this process lives
  const std::optional<AskedMode>& in_force() const {
    return until_restart ? until_restart : lasting;
  }
};

class Holds {
 public:
  static constexpr std::size_t kMostContainers = 10'000;

  Holds() = default;  // kept in memory alone
  explicit Holds(std::string path) : path_(std::move(path)) {}
  // Reads `path`; empty if there is no such file. Errors: io, denied, and invalid if the file is
  // damaged. An older cgphase that reads the file takes each mode as an upper bound.
  static Result<Holds> load(const std::string& path);

  struct Hold {
    bool paused = false;
    ModeRequest mode;
  };
  // A container keeps its identity over a restart if engine and name are the same.
  Hold of(const ContainerInfo& container) const;
  const ModeRequest& host() const { return host_; }
  // By "engine:name", printable; also of containers that do not run now.
  const std::map<std::string, Hold>& containers() const { return containers_; }

  // Errors: invalid for a new container if kMostContainers have a pause or a mode already.
  Status set(const ContainerInfo& container, const Hold& hold);
  void set_host(const ModeRequest& mode) { host_ = mode; }
  // Takes back the modes of every container of this printable name, of any engine, and says how
  // many had one. Pauses stay.
  std::size_t forget_modes(const std::string& name);
  // The file could not be read. A pause may be lost, so the host is observed until an
  // administrator sets its mode.
  void lose();
  void end_loss() { lost_ = false; }
  bool lost() const { return lost_; }
  // Waits for the disk. After an error what was set lasts until this process ends.
  Status save() const;

 private:
  std::string path_;  // empty: in memory alone
  ModeRequest host_;
  bool lost_ = false;
  std::map<std::string, Hold> containers_;
};

}  // namespace cgphase
