// What this host offers cgphase, and what is in its way: read only, needs no daemon and no rights
// beyond reading. Every file is tried, no kernel version is judged.
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
  std::string text;     // what is so
  std::string way_out;  // what to do about it; empty where nothing is to be done
};

// Where to look. Tests give directories of their own.
struct DoctorRoots {
  std::string cgroup = "/sys/fs/cgroup";
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string run = "/run";
  std::string state = "/var/lib/cgphase";
};

// One finding or more per check, in a fixed order: kernel, what cli/commands/degradations.h looks
// for, swap, disk, neighbours. A check that has nothing to look at gives none.
std::vector<Finding> examine(const DoctorRoots& roots);

// Whether the daemon can run here, by running it for its version, with those of its libraries and
// of systemd. A path of "" is a program that is not there.
Finding examine_programs(const std::string& daemon, const std::string& systemctl);
// Whether the kernel's clock is kept right (adjtimex).
Finding examine_clock();
// From the free bytes of the file system that holds the history. Pure.
Finding judge_disk(const std::string& path, std::uint64_t free_bytes);

Level worst(const std::vector<Finding>& findings);
nlohmann::json doctor_reply(const std::vector<Finding>& findings);

}  // namespace cgphase
