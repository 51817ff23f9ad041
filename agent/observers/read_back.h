// What a write left behind, in words for the journal.
#pragma once

#include <string>

#include "cgroupfs/limits.h"
#include "policy/decision.h"

namespace cgphase {

constexpr Resource resource_of(Knob knob) {
  return knob == Knob::memory_max || knob == Knob::memory_high ? Resource::memory : Resource::cpu;
}

// Of the files that read otherwise than before: "cpu.max reads 50000 100000".
std::string read_back_text(const Limits& before, const Limits& in_force);

}  // namespace cgphase
