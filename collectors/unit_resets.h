// Detects when systemd rewrites the limits of its units. That silently undoes what others wrote to
// their cgroups (moby/moby#51446). It happens at a daemon-reload and whenever a property of the
// unit is set. With systemd 257 it also happens at the next start of a unit in the same slice.
// systemd always writes all knobs at once: cpu.idle before cpu.max, memory.low before memory.max.
// Nobody else writes cpu.idle and memory.low. Measured with 252 and 257: tests/engines/drift.sh.
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

// Detects changes of a file, or of the entries of a directory: created, written, touched or
// removed. One stat() per call, no allocation.
class ChangeMark {
 public:
  explicit ChangeMark(std::string path);  // reads the first state
  // True if it changed since the last call. If it cannot be read, it counts as unchanged.
  bool changed();

 private:
  struct Stamp {
    std::uint64_t inode = 0;  // 0: it does not exist
    std::int64_t modified_ns = 0, status_changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  std::optional<Stamp> read_stamp() const;

  std::string path_;
  Stamp seen_;
};

// Detects writes to files of many directories, with one inotify instance. Without inotify, without
// a watch or after an overflow, writes are not seen. An unseen write counts as none, so that a
// caller takes a reset for an intended change.
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
    // True if it was written since the last call, up to the last poll().
    bool written();
    // Retries a watch that failed. Writes until now are not reported.
    void watch_again(int directory_fd);

   private:
    void watch(int directory_fd);

    WriteWatch* owner_;
    const char* name_;
    int watch_ = -1;  // -1: not watched
    bool missed_ = false;
  };

  // Reads new events. Without a write it costs one system call and no allocation.
  void poll();
  // Number of existing files that could not be watched.
  std::size_t unwatched() const { return unwatched_; }
  // Number of inotify overflows between two calls of poll() (fs.inotify.max_queued_events).
  std::uint64_t overflows() const { return overflows_; }

 private:
  Fd inotify_;
  std::map<int, bool> written_;  // by watch
  std::size_t unreported_ = 0;   // number of written files that written() did not report yet
  std::size_t unwatched_ = 0;
  std::uint64_t overflows_ = 0;
};

// The limits of one container, if it is a systemd unit.
class UnitResets {
 public:
  // `root` is "/" if engines and systemd run on this machine.
  UnitResets(const ContainerInfo& container, int directory_fd, WriteWatch& writes,
             const std::string& root);
  // Call it after each reading of the limits and the poll() that followed, so that a reset that was
  // read is recognised. Returns when systemd last rewrote the limits without a change of properties
  // by people.
  std::optional<MonotonicTime> last(MonotonicTime now);
  // Retries watches that failed, because another process may have freed some.
  void watch_again(int directory_fd);

 private:
  std::vector<WriteWatch::File> files_;
  std::vector<ChangeMark> properties_;
  std::optional<MonotonicTime> last_;
};

}  // namespace cgphase
