// A place on disk for what must not fill the memory.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

// $TMPDIR where that is set, else /var/tmp: a disk also where /tmp lies in memory.
std::string temporary_folder();

// An empty file in temporary_folder() to write and to read, which has no name and is gone with its
// descriptor. Errors name the folder: not_found, denied, io.
Result<Fd> unlinked_file();

}  // namespace cgphase
