// Whole small files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

// The whole file, at most `limit_bytes`; a larger one is invalid.
Result<std::string> read_file(const std::string& path, std::size_t limit_bytes);
Result<std::string> read_file_at(int directory_fd, const char* name, std::size_t limit_bytes);

// Writes a temporary file beside `path`, fsyncs it, renames it over `path` and fsyncs the
// directory: a reader sees the old content or the new, never a part.
Status replace_file(const std::string& path, std::string_view content, unsigned mode = 0644);

}  // namespace cgphase
