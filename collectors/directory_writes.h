// Which kinds of files of many cgroups changed, by one inotify instance: the kernel tells of each
// write to a file of a cgroup, and of new events in memory.events and cgroup.events. So a file that
// nobody wrote need not be read to be known.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace cgphase {

// What may differ from the last reading.
struct DirectoryChange {
  bool events = false;  // memory.events, memory.events.local, cgroup.events
  bool limits = false;  // what people and programs write
};

// Which kind a file of that name is of; neither for those that are read at every tick anyway, and
// for those that move processes.
DirectoryChange change_of(std::string_view file_name);

// Owned and used by one thread. Without inotify, or where watches ran out, nothing is watched, and
// who asks must read.
class DirectoryWrites {
 public:
  DirectoryWrites();

  // A place in the table from now on, with everything changed at first. -1: not watched, which
  // take() tells as everything changed each time.
  int add(int directory_fd);
  void remove(int place);

  // Takes what the kernel told since the last look. No allocation.
  void look();
  // What changed up to the last look, once. All of it where more was told than inotify keeps.
  DirectoryChange take(int place);
  // Everything counts as changed, once.
  void doubt(int place);

 private:
  struct Watched {
    int watch = -1;
    DirectoryChange change;
  };
  Watched* find(int watch);
  void take_event(int watch, std::string_view name);

  Fd inotify_;
  std::vector<Watched> watched_;  // ascending watch; inotify never gives one out twice
};

}  // namespace cgphase
