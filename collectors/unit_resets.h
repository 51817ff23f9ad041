// When systemd wrote the limits of its units anew. That undoes, with no word to anybody, what was
// written to their cgroups by others (moby/moby#51446). Seen by the marks that systemd leaves
// before it writes: a daemon-reload and a daemon-reexec set the times of systemd-units-load; a
// property that is set on a transient unit, as `docker update` does, puts a file into
// transient/UNIT.d. Measured with systemd 252 in tests/engines/drift.sh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "collectors/containers/container_info.h"
#include "collectors/limits.h"

namespace cgphase {

// Whether a file, or what stands in a directory, changed: made, written, touched or removed.
// One stat() per look, no allocation.
class ChangeMark {
 public:
  explicit ChangeMark(std::string path);  // the first look
  // Since the last look. What cannot be looked at did not change.
  bool changed();

 private:
  struct Stamp {
    std::uint64_t inode = 0;  // 0: not there
    std::int64_t modified_ns = 0, status_changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  std::optional<Stamp> look() const;

  std::string path_;
  Stamp seen_;
};

// Reloads of the system's service manager. `root` is "/" where it is this machine's.
class ReloadWatch {
 public:
  explicit ReloadWatch(const std::string& root);
  // Once per tick and after the limits were read, so that a reset that was read is known as one.
  void look(MonotonicTime now) { if (mark_.changed()) last_ = now; }
  // When look() last saw that there had been one.
  std::optional<MonotonicTime> last() const { return last_; }

 private:
  ChangeMark mark_;
  std::optional<MonotonicTime> last_;
};

// One container's limits, if they are those of a unit of the system's service manager.
class UnitResets {
 public:
  UnitResets(const ContainerInfo& container, const std::string& root);
  // After each reading of its limits. When they were last written anew, as far as known: at a
  // reload, or with a property that an engine set.
  std::optional<MonotonicTime> last(const Limits& limits, MonotonicTime now,
                                    const ReloadWatch& reloads);

 private:
  bool is_unit_ = false;
  std::optional<ChangeMark> properties_;
  std::optional<Limits> limits_;  // at the last reading: a reset always changes them
  std::optional<MonotonicTime> properties_set_;
};

}  // namespace cgphase
