// Finds programs on this host that set limits themselves, or that kill because of the pressure and
// the limits that cgphase creates. A process can choose its name, so that the name alone proves
// nothing.
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
  manager,  // sets its own limits: cgphase then only observes
  copy,     // another cgphased: cgphase then only observes
  killer,   // kills because of memory pressure anywhere on the host
  scaler,   // changes the limits of the containers that its label names; those are left alone
  monitor,  // kills within its own container, near that container's limit, or has sudden peaks
};

struct NeighbourName {
  std::string_view process;  // as in /proc/PID/comm
  NeighbourKind kind = NeighbourKind::manager;
  const char* text = "";     // "the kubelet manages limits here"
  // The last element of /proc/PID/exe, if it differs from `process`. Such a program has many names,
  // and only this one counts.
  std::string_view program = {};
  // The unit of a program that an interpreter runs. Only root can start a process there.
  std::string_view unit = {};
};
// Sorted by importance.
std::span<const NeighbourName> neighbour_names();

struct Neighbour {
  const NeighbourName* name = nullptr;  // into neighbour_names()
  pid_t pid = 0;
  // The cgroup of the process, as in ContainerInfo. Foreign bytes; empty if it cannot be read or is
  // outside the watched root.
  CgroupPath cgroup;
};
// "the kubelet manages limits here (pid 812)". The text contains no foreign bytes.
std::string describe(const Neighbour& neighbour);

struct Neighbours {
  std::vector<Neighbour> seen;
  bool complete = true;  // false if there are more processes or monitors than the limits below
};

// Remembers kernel threads, which are half of the processes of an idle host and never become a
// program. So a known one is not read again. The key is the pid and the inode of its directory in
// /proc, which changes if the pid is reused.
class KernelThreads {
 public:
  // Mark the begin and end of a scan. A thread that the scan did not meet is forgotten.
  void begin() { met_.clear(); }
  void end();
  // True if the thread is known.
  bool meet(pid_t pid, std::uint64_t inode);
  void add(pid_t pid, std::uint64_t inode) { met_.push_back({pid, inode}); }

 private:
  struct Thread {
    pid_t pid = 0;
    std::uint64_t inode = 0;
  };
  std::vector<Thread> known_, met_;  // ascending pid between scans
};

// Processes that are read, in the order of /proc.
inline constexpr std::size_t kMostProcesses = 32768;
inline constexpr std::size_t kMostMonitors = 1024;

// Reads comm and the program of every process below `proc_root`, and status and cgroup of possible
// neighbours. It takes about 6 us per process and no lock of theirs.
// A manager, a copy or a killer counts by its program, /proc/PID/exe, and only if all of these
// hold. A condition that cannot be checked counts as met.
// - Only root (or this user) can change the program file and every directory above it, and the file
// is not set-uid. A second copy of our own program counts anywhere.
// - A manager runs as root (or this user), by its real and its effective uid. A killer runs as root
// or has CAP_KILL.
// - It is not in a container: no own pid namespace, no cgroup that recognise_path() knows.
// - It is not below user@UID.service, where the user can start anything. If the program cannot be
// read, and for killers, nothing in user.slice counts.
// A monitor or a scaler counts by its name, because it affects only its own container, or only
// those with its label.
// This process and its children are skipped.
// `threads` is kept between scans; without it all processes are read. `above_root` is the result of
// kernel_path_of_root() for the watched root; paths begin below it.
// Errors: `proc_root` cannot be opened, or an existing process cannot be read (descriptors).
Result<Neighbours> find_neighbours(const std::string& proc_root, KernelThreads* threads = nullptr,
                                   const CgroupPath& above_root = {});

}  // namespace cgphase
