// What a host may lack, what that costs, and how to fix it: the table behind `cgphase doctor`. Each
// row is checked by reading files; kernel versions are not compared.
#pragma once

#include <span>
#include <string_view>

#include "cli/commands/doctor.h"

namespace cgphase {

struct Degradation {
  std::string_view check;  // name of the finding: "psi"
  Level level = Level::warn;
  std::string_view missing;  // what is missing
  std::string_view cost;     // what cgphase then does not do, or does in another way
  std::string_view way_out;  // what to do about it
  bool (*found)(const DoctorRoots& roots);
};

// In the order in which doctor prints them. Rows of one check are adjacent.
std::span<const Degradation> degradations();

// True if only cgroup v2 is mounted there. Most checks need that.
bool unified(const DoctorRoots& roots);
// True if a child cgroup of the root has this file.
bool child_has(const DoctorRoots& roots, std::string_view file);

}  // namespace cgphase
