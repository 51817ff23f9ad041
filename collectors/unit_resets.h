// When systemd wrote the limits of its units anew. That undoes, with no word to anybody, what was
// written to their cgroups by others (moby/moby#51446): at a daemon-reload, whenever any property
// of the unit is set, and with systemd 257 as late as the next start of a unit in the same slice.
// Always it writes all knobs in one go: cpu.idle before cpu.max, memory.low before memory.max, and
// those two nobody else writes. Measured with 252 and 257: tests/engines/drift.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "collectors/containers/container_info.h"

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

// Writes to the files of many directories, by one inotify instance. Without one, or where watches
// ran out, nothing is seen; nor is what the instance had no room for. A write that was not seen is
// taken for none: whoever asks then errs on the side of somebody's intent.
class WriteWatch {
 public:
  WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  // One watched file; the WriteWatch must outlive it.
  class File {
   public:
    File(WriteWatch& owner, int directory_fd, const char* name);  // `name` must outlive it
    File(File&& other) noexcept;
    File& operator=(File&& other) = delete;
    ~File();
    // Since it was last asked for, as far as look() saw.
    bool written();
    // Where it could not be watched so far; what was written until now is not told.
    void watch_again(int directory_fd);

   private:
    void watch(int directory_fd);

    WriteWatch* owner_;
    const char* name_;
    int watch_ = -1;  // -1: not watched
    bool missed_ = false;
  };

  // One system call and no allocation when nothing was written.
  void look();
  // Files that are there and could not be watched.
  std::size_t unwatched() const { return unwatched_; }
  // How often more was written between two looks than inotify keeps
  // (fs.inotify.max_queued_events).
  std::uint64_t overflows() const { return overflows_; }

 private:
  Fd inotify_;
  std::map<int, bool> written_;  // by watch
  std::size_t untold_ = 0;       // of them written
  std::size_t unwatched_ = 0;
  std::uint64_t overflows_ = 0;
};

// One container's limits, if they are those of a unit.
class UnitResets {
 public:
  // `root` is "/" where the engines and systemd are this machine's.
  UnitResets(const ContainerInfo& container, int directory_fd, WriteWatch& writes,
             const std::string& root);
  // After each reading of its limits and the look() that followed it, so that a reset that was
  // read is known as one. When they were last written anew, and not because people set a property.
  std::optional<MonotonicTime> last(MonotonicTime now);
  // What could not be watched, once more: whoever holds all watches may have let go of some.
  void watch_again(int directory_fd);

 private:
  std::vector<WriteWatch::File> files_;
  std::vector<ChangeMark> properties_;
  std::optional<MonotonicTime> last_;
};

}  // namespace cgphase
