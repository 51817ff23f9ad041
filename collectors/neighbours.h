// Programs beside cgphase that set limits themselves, or that kill on the pressure and the limits
// that it makes: found among the processes of this host. A process can choose its name, so the
// name alone proves nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

enum class NeighbourKind : std::uint8_t {
  manager,  // sets limits of its own: beside it cgphase only observes
  copy,     // another cgphased: likewise
  killer,   // kills on memory pressure, wherever it finds it
  monitor,  // kills within its own container, near that one's limit
};

struct NeighbourName {
  std::string_view process;  // as in /proc/PID/comm
  NeighbourKind kind = NeighbourKind::manager;
  const char* text = "";     // "the kubelet manages limits here"
  // The last element of /proc/PID/exe, where it is another one than `process`: a program with many
  // names, of which only this one is meant.
  std::string_view program = {};
};
// Sorted by what weighs most.
std::span<const NeighbourName> neighbour_names();

struct Neighbour {
  const NeighbourName* name = nullptr;  // into neighbour_names()
  pid_t pid = 0;
  // Of the process, as containers have it; foreign bytes, empty where it cannot be read, or lies
  // outside the root that is watched.
  CgroupPath cgroup;
};
// "the kubelet manages limits here (pid 812)": nothing in it is foreign.
std::string describe(const Neighbour& neighbour);

struct Neighbours {
  std::vector<Neighbour> seen;
  bool complete = true;  // else there are more processes or monitors than the bounds below
};

// Threads of the kernel, half of the processes of a quiet host, never become a program: one that is
// known is not read again. By pid and by the inode of its directory in /proc, which is another one
// for the next process of that pid.
class KernelThreads {
 public:
  // A look begins, and ends; what it did not meet is forgotten.
  void begin() { met_.clear(); }
  void end();
  // Whether it is one that is known.
  bool meet(pid_t pid, std::uint64_t inode);
  void add(pid_t pid, std::uint64_t inode) { met_.push_back({pid, inode}); }

 private:
  struct Thread {
    pid_t pid = 0;
    std::uint64_t inode = 0;
  };
  std::vector<Thread> known_, met_;  // ascending pid between looks
};

inline constexpr std::size_t kMostProcesses = 32768;  // looked at, in the order of /proc
inline constexpr std::size_t kMostMonitors = 1024;

// Reads comm and the program of every process below `proc_root`, and status and cgroup of those
// that may be a neighbour: about 6 us per process, no lock of theirs.
// A manager, a copy or a killer counts by its program, /proc/PID/exe, and only where all of this
// holds; what cannot be read counts against us:
// - the file of the program, and every directory above it, can be changed by root (or this user)
//   alone, and the file is not set-uid; a second copy of our own program counts anywhere;
// - a manager runs as root (or this user), by its real and its effective uid; a killer runs as root
//   or has CAP_KILL;
// - it is in no container: no pid namespace of its own, no cgroup that recognise_path() knows;
// - it is not below user@UID.service, whose user can start anything there. Where the program cannot
//   be read, and of killers, nothing in user.slice counts.
// A monitor counts by its name: it concerns its own container alone.
// This process and its children are left out.
// `threads` is kept from look to look; without it all are read. `above_root`: what
// kernel_path_of_root() says of the root that is watched; paths begin below it.
// Errors: `proc_root` cannot be opened, or a process cannot be read that is there (descriptors).
Result<Neighbours> find_neighbours(const std::string& proc_root, KernelThreads* threads = nullptr,
                                   const CgroupPath& above_root = {});

}  // namespace cgphase
