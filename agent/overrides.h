// Overrides that administrators set by command: pauses and modes. Which are in force, and how they
// are saved.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/config/config.h"
#include "agent/override_table.h"
#include "base/clock.h"
#include "base/result.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/containers/container_info.h"
#include "storage/store_thread.h"

namespace cgphase {

// The agent's thread owns and uses it.
class Overrides {
 public:
  using Post = std::function<void(std::function<void()>)>;
  // `config` is the configuration in force. `store` may be null: then a save blocks the caller. All
  // references outlive it.
  Overrides(OverrideTable table, const Config& config, const Clock& clock, StoreThread* store,
            Post post);

  const OverrideTable& table() const { return table_; }
  bool paused(const ContainerInfo& info) const { return table_.of(info).paused; }
  // The container's own mode that a command set. A mode of the host does not limit it here.
  std::optional<TimedMode> own_mode(const ContainerInfo& info) const;
  // No container gets a higher mode: observe if a command set the host to it.
  Mode ceiling() const;
  // The mode that configuration and commands ask for, whatever else prevents it.
  Mode asked_mode(const ContainerInfo& info) const;
  // A name that an ordinary user can give to another container is no permission, so such a mode
  // ends with the container.
  bool kept_by_name(const ContainerInfo& info, Mode mode) const;

  // A mode lasts until it is changed, or until this process ends; absent: as configured. Saves.
  void set_host_mode(std::optional<Mode> mode, bool until_restart);
  Status set_mode(const ContainerInfo& info, std::optional<Mode> mode, bool until_restart);
  Status set_paused(const ContainerInfo& info, bool paused);
  // Drops the modes of all containers of this printable name, also of those that do not run.
  // Returns their number.
  std::size_t forget_modes(const std::string& name);
  void container_removed(CgroupId id) { modes_by_id_.erase(id); }
  // A new mode of the host in the configuration replaces the one that a command set.
  void drop_host_mode();
  // An administrator's word ends the state after a damaged file.
  void end_loss() { table_.end_loss(); }

  void save();
  void retry_save() { if (!save_error_.empty()) save(); }
  // Why the overrides are not on disk; empty: they are.
  const std::string& save_error() const { return save_error_; }
  // Calls `then` when everything is on disk, with an error text if that fails or takes longer than
  // a command may wait.
  using AfterSave = std::function<void(const std::string& error)>;
  void after_save(AfterSave then);
  // Call it regularly while answers wait.
  void answer_saved();

 private:
  ModeRequest changed(ModeRequest request, std::optional<Mode> mode, bool until_restart) const;

  OverrideTable table_;
  const Config& config_;
  const Clock& clock_;
  StoreThread* store_;
  Post post_;
  // Modes above the configured ones, of containers whose name is no permission.
  std::map<CgroupId, TimedMode> modes_by_id_;
  std::string save_error_;
  std::size_t saves_begun_ = 0;  // not finished
  std::vector<std::pair<MonotonicTime, AfterSave>> after_save_;
};

}  // namespace cgphase
