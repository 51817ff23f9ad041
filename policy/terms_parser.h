// Terms from text: labels of a container, and the key `containers` of the configuration.
#pragma once

#include <string_view>

#include "base/result.h"
#include "policy/terms.h"

namespace cgphase {

// The names of all terms. Labels have the prefix "cgphase.".
inline constexpr std::string_view kTermNames[] = {"class",      "cpu.min",    "cpu.max",
                                                  "memory.min", "memory.max", "sleep",
                                                  "freeze"};

// Sets the term `key`, one of kTermNames. CPU is in cores, memory is a size, sleep is on or off,
// freeze is a time. The classes of jobs are names of these: inference is critical, sidecar is
// standard, training is batch. Errors: invalid (an unknown key or value; says what is allowed).
Status set_term(Terms& terms, std::string_view key, std::string_view value);

// Sets terms from text: "class=batch memory.min=1G". Errors: those of set_term(); terms before the
// wrong one are set.
Status set_terms(Terms& terms, std::string_view text);

}  // namespace cgphase
