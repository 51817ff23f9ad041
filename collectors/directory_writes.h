// Detects which kinds of files of many cgroups changed, with one inotify instance. The kernel
// reports each write to a file of a cgroup, and new events in memory.events and cgroup.events. So a
// file that was not written need not be read again.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace cgphase {

// The files that may differ from the last reading.
struct DirectoryChange {
  bool events = false;  // memory.events, memory.events.local, cgroup.events
  bool limits = false;  // files that people and programs write
};

// The kind of a file with that name. Neither kind for files that are read at every tick anyway, and
// for files that move processes.
DirectoryChange change_of(std::string_view file_name);

// Owned and used by one thread. Without inotify, or if watches ran out, nothing is watched, and the
// caller must read the files.
class DirectoryWrites {
 public:
  DirectoryWrites();

  // Adds a directory and returns its place in the table. At first everything counts as changed. -1
  // if it cannot be watched: drain() then reports everything as changed each time.
  int add(int directory_fd);
  void remove(int place);

  // Reads the kernel's events since the last call. No allocation.
  void poll();
  // Returns and clears the changes up to the last poll(). After an inotify overflow everything
  // counts as changed.
  DirectoryChange drain(int place);
  // Marks everything as changed, once.
  void mark_changed(int place);

 private:
  struct Watched {
    int watch = -1;
    DirectoryChange change;
  };
  Watched* find(int watch);
  void add_event(int watch, std::string_view name);

  Fd inotify_;
  std::vector<Watched> watched_;  // ascending watch; inotify never reuses a number
};

}  // namespace cgphase
