// The disk of the history: real files behind a layer of SQLite (a VFS, sqlite.org/vfs.html) whose
// writes fail on request.
#pragma once

#include <atomic>

namespace cgphase::simulator {

class Disk {
 public:
  enum class State { works, full, broken };  // SQLITE_FULL; SQLITE_IOERR at writing and at fsync

  // The disk of this process. Every database opened from then on uses it.
  static Disk& of_process();
  void set(State state) { state_.store(state); }
  // SQLITE_OK, or the error of a call that would change the file. `broken` is the code for the
  // state `broken`.
  int changes(int broken);
  unsigned long long failures() const { return failures_.load(); }

 private:
  Disk();
  std::atomic<State> state_{State::works};
  std::atomic<unsigned long long> failures_{0};
};

}  // namespace cgphase::simulator
