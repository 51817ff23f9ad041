// The table of overrides that administrators set by command: pauses and modes. They survive
// restarts of container, daemon and host until a command removes them (docs/configuration.md).
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

struct TimedMode {
  Mode mode = Mode::observe;
  WallTime since;  // the epoch if an older version of cgphase saved it
};

// Empty: as configured.
struct ModeRequest {
  std::optional<TimedMode> lasting;
  std::optional<TimedMode> until_restart;  // replaces `lasting` while this process lives
  const std::optional<TimedMode>& in_force() const {
    return until_restart ? until_restart : lasting;
  }
};

struct Override {
  bool paused = false;
  ModeRequest mode;
};

class OverrideTable {
 public:
  static constexpr std::size_t kMostContainers = 10'000;

  OverrideTable() = default;  // in memory only
  explicit OverrideTable(std::string path) : path_(std::move(path)) {}
  // Reads `path`; empty if there is no such file. Errors: io, denied, and invalid if the file is
  // damaged. An older cgphase that reads the file takes each mode as an upper bound.
  static Result<OverrideTable> load(const std::string& path);

  // A container keeps its identity over a restart if engine and name are the same.
  Override of(const ContainerInfo& container) const;
  const ModeRequest& host() const { return host_; }
  // By "engine:name", printable; also containers that do not run.
  const std::map<std::string, Override>& containers() const { return containers_; }

  // Errors: invalid for a new container if kMostContainers have a pause or a mode already.
  Status set(const ContainerInfo& container, const Override& one);
  void set_host(const ModeRequest& mode) { host_ = mode; }
  // Removes the modes of every container of this printable name, of any engine, and returns their
  // number. Pauses stay.
  std::size_t forget_modes(const std::string& name);
  // The file could not be read. A pause may be lost, so the host is observed until an
  // administrator sets its mode.
  void lose();
  void end_loss() { lost_ = false; }
  bool lost() const { return lost_; }
  // Blocks for the disk. After an error the overrides last until this process ends.
  Status save() const;

 private:
  std::string path_;  // empty: in memory only
  ModeRequest host_;
  bool lost_ = false;
  std::map<std::string, Override> containers_;
};

}  // namespace cgphase
