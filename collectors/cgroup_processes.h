// Lists the processes of a cgroup, and the programs that they run.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace cgphase {

// Limits of one visit.
inline constexpr std::size_t kMostVisitedCgroups = 256;

// Calls `look` with the pid of each process of the cgroup behind `cgroup_fd` and of those below it,
// until it returns false. Returns false if not all could be listed: beyond a limit, or unreadable.
bool visit_processes(int cgroup_fd, const std::function<bool(std::string_view pid)>& look);

// True if this error means that the object ended or never existed, so that nothing is hidden.
bool is_absent(int error_number);

// The results are foreign bytes. They are empty if the process has ended or may not be read.
// Neither call waits for the process, as reading its command line may.
std::string process_command(const std::string& proc_root, std::string_view pid);  // comm
std::string process_program(const std::string& proc_root, std::string_view pid);  // path of exe

}  // namespace cgphase
