// Whole small files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

// The whole file, at most `limit_bytes`; a larger one is invalid.
Result<std::string> read_file(const std::string& path, std::size_t limit_bytes);
Result<std::string> read_file_at(int directory_fd, const char* name, std::size_t limit_bytes);

// Writes a temporary file beside `path`, fsyncs it, renames it over `path` and fsyncs the
// directory: a reader sees the old content or the new, never a part. A link stays, and what it
// leads to is replaced. Errors: invalid (a link to nothing; a device, a pipe or whatever else is no
// regular file, which stays what it is), and those of the files.
Status replace_file(const std::string& path, std::string_view content, unsigned mode = 0644);

// The same piece by piece, for what should not be in memory at once. Without commit() the old
// content stays.
class FileReplacement {
 public:
  static Result<FileReplacement> create(const std::string& path, unsigned mode = 0644);
  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();

  Status write(std::string_view content);
  Status commit();
  // For a library that writes by name; it has closed the file before commit().
  const std::string& temporary_path() const { return temporary_; }

 private:
  FileReplacement(std::string path, std::string temporary, Fd fd);

  std::string path_, temporary_;  // temporary_ is empty once it is gone
  Fd fd_;
};

}  // namespace cgphase
