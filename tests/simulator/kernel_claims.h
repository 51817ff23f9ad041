// What the simulator claims about cgroup v2, as small scripts that run on it and on a real kernel
// alike. The unit test runs them on the simulator, the `kernel` test in a guest; both must give the
// outcome that stands beside the script.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cgphase::simulator {

// A cgroup v2 hierarchy to try something on. Paths begin with '/', below a place of its own.
// Functions that return an int: 0 or an errno.
class Hierarchy {
 public:
  virtual ~Hierarchy() = default;
  virtual int make(const std::string& path) = 0;
  virtual int remove(const std::string& path) = 0;
  virtual std::uint64_t inode(const std::string& path) = 0;
  virtual int write(const std::string& path, const std::string& file, const std::string& text) = 0;
  // The text without its last newline, or the errno's word.
  virtual std::string read(const std::string& path, const std::string& file) = 0;
  // Opens the file and keeps it; read and write again through it later.
  virtual int hold(const std::string& path, const std::string& file) = 0;
  virtual std::string read_held() = 0;
  virtual int write_held(const std::string& text) = 0;
  // The directory stays open, the file is opened in it.
  virtual int hold_directory(const std::string& path) = 0;
  virtual int open_in_held(const std::string& file) = 0;

  // A process in the cgroup, by the number that is returned. It ends when told to, or killed.
  virtual int spawn(const std::string& path) = 0;
  virtual bool alive(int process) = 0;
  virtual void end(int process) = 0;
  // Each returns when the process has done it or is dead.
  virtual void take_anon(int process, std::uint64_t bytes) = 0;
  virtual void take_shmem(int process, std::uint64_t bytes) = 0;
  virtual void take_file(int process, std::uint64_t bytes) = 0;
  // Wants one CPU for so long (wall clock).
  virtual void spin(int process, int milliseconds) = 0;
};

struct Claim {
  const char* name;
  std::string (*outcome)(Hierarchy&);
  const char* expected;
};
std::vector<Claim> kernel_claims();

}  // namespace cgphase::simulator
