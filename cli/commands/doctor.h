// Checks what this host offers and what it lacks. Read only; needs no daemon, and no rights beyond
// reading. Each file is tried; kernel versions are not compared.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cgphase {

enum class Level : std::uint8_t { ok, warn, fail };

struct Finding {
  Level level = Level::ok;
  std::string name;     // stable, for scripts: "kernel", "cgroup", "psi", ...
  std::string text;     // what was found
  std::string way_out;  // how to fix it; empty if there is nothing to do
};

// Directories to read. Tests set their own.
struct DoctorRoots {
  std::string cgroup = "/sys/fs/cgroup";
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string run = "/run";
  std::string state = "/var/lib/cgphase";
};

// Returns findings in a fixed order: kernel, the checks of cli/commands/degradations.h, swap, disk,
// neighbours. Each check has one finding or more. A check that has nothing to read has none.
std::vector<Finding> examine(const DoctorRoots& roots);

// Runs the daemon for its version, and reports it with the versions of its libraries and of
// systemd. An empty path means that the program was not found.
Finding examine_programs(const std::string& daemon, const std::string& systemctl);
// Whether the kernel's clock is synchronised (adjtimex).
Finding examine_clock();
// Judges the free bytes of the file system that contains the history. Pure.
Finding judge_disk(const std::string& path, std::uint64_t free_bytes);

Level worst(const std::vector<Finding>& findings);
nlohmann::json doctor_reply(const std::vector<Finding>& findings);

}  // namespace cgphase
