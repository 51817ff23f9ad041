// Recognises files that are not text, or not CSV, by their first bytes.
#pragma once

#include <string>
#include <string_view>

namespace cgphase {

// Returns what the file is and what to do with it, as a predicate after its name. `head` is the
// beginning of the file. Empty if it may be CSV. A tar archive is recognised from 512 bytes on.
std::string foreign_file(std::string_view head);

}  // namespace cgphase
