// The simulator's claims about cgroup v2, as small scripts. The unit test runs them on the
// simulator, the `kernel` test on a real kernel in a guest. Both must give the outcome beside the
// script.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cgphase::simulator {

// A cgroup v2 hierarchy for experiments. Paths begin with '/' and are relative to its own
// directory. Functions that return int return 0 or an errno.
class Hierarchy {
 public:
  virtual ~Hierarchy() = default;
  virtual int make(const std::string& path) = 0;
  virtual int remove(const std::string& path) = 0;
  virtual std::uint64_t inode(const std::string& path) = 0;
  virtual int write(const std::string& path, const std::string& file, const std::string& text) = 0;
  // The text without its last newline, or the name of the errno.
  virtual std::string read(const std::string& path, const std::string& file) = 0;
  // Opens the file and keeps it open for later reads and writes.
  virtual int hold(const std::string& path, const std::string& file) = 0;
  virtual std::string read_held() = 0;
  virtual int write_held(const std::string& text) = 0;
  // Keeps the directory open, so that files can be opened in it.
  virtual int hold_directory(const std::string& path) = 0;
  virtual int open_in_held(const std::string& file) = 0;

  // Starts a process in the cgroup and returns its number. It runs until end() or until it is
  // killed.
  virtual int spawn(const std::string& path) = 0;
  virtual bool alive(int process) = 0;
  virtual void end(int process) = 0;
  // Each of these returns when the process has finished or is dead.
  virtual void take_anon(int process, std::uint64_t bytes) = 0;
  virtual void take_shmem(int process, std::uint64_t bytes) = 0;
  virtual void take_file(int process, std::uint64_t bytes) = 0;
  // Wants one CPU for this time (wall clock).
  virtual void spin(int process, int milliseconds) = 0;
};

struct Claim {
  const char* name;
  std::string (*outcome)(Hierarchy&);
  const char* expected;
};
std::vector<Claim> kernel_claims();

}  // namespace cgphase::simulator
