// The disk below the history: files on the real file system, through a layer of SQLite (a VFS,
// sqlite.org/vfs.html) whose writes fail while it is told to.
#pragma once

#include <atomic>

namespace cgphase::simulator {

class Disk {
 public:
  enum class State { works, full, broken };  // SQLITE_FULL; SQLITE_IOERR at writing and at fsync

  // Of this process, and the one below every database opened from then on.
  static Disk& of_process();
  void set(State state) { state_.store(state); }
  // SQLITE_OK, or how a call that should change the file fails; `broken` is the code for that.
  int changes(int broken);
  unsigned long long failures() const { return failures_.load(); }

 private:
  Disk();
  std::atomic<State> state_{State::works};
  std::atomic<unsigned long long> failures_{0};
};

}  // namespace cgphase::simulator
