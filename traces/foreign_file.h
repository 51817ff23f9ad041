// Files that are no text, or no CSV, told by their first bytes.
#pragma once

#include <string>
#include <string_view>

namespace cgphase {

// One sentence that says what the file is and what to do with it, for a file that begins with these
// bytes. Empty where it may be CSV. A tar archive is recognised from 512 bytes on.
std::string foreign_file(std::string_view head);

}  // namespace cgphase
