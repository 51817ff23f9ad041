// What a host may lack, what that costs, and the way out: the one table behind `cgphase doctor` and
// docs/troubleshooting.md. Every row is found by looking for the file itself, no version is judged.
#pragma once

#include <span>
#include <string_view>

#include "cli/commands/doctor.h"

namespace cgphase {

struct Degradation {
  std::string_view check;    // the name of the finding: "psi"
  Level level = Level::warn;
  std::string_view missing;  // what is missing
  std::string_view cost;     // what cgphase does less, or otherwise
  std::string_view way_out;  // what to do about it
  bool (*found)(const DoctorRoots& roots);
};

// In the order in which doctor tells them; those of one check stand together.
std::span<const Degradation> degradations();

// Whether cgroup v2 is mounted there alone, which most checks need to look any further.
bool unified(const DoctorRoots& roots);
// Whether any cgroup below the root has this file.
bool child_has(const DoctorRoots& roots, std::string_view file);

}  // namespace cgphase
