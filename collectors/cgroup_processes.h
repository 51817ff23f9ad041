// Which processes are in a cgroup, and what they run.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace cgphase {

// Bounds of one visit.
inline constexpr std::size_t kMostVisitedCgroups = 256;

// Calls `look` with the pid of each process of the cgroup behind `cgroup_fd` and of those below it,
// until it returns false. False where not all could be listed: beyond a bound, or unreadable.
bool visit_processes(int cgroup_fd, const std::function<bool(std::string_view pid)>& look);

// What cannot be opened for this error ended, or never was there: nothing is hidden behind it.
bool is_absent(int error_number);

// Foreign bytes; empty where the process has ended or may not be looked at. Neither waits for the
// process, as reading its command line may.
std::string process_command(const std::string& proc_root, std::string_view pid);  // comm
std::string process_program(const std::string& proc_root, std::string_view pid);  // path of exe

}  // namespace cgphase
