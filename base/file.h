// Whole small files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/held_place.h"
#include "base/result.h"

namespace cgphase {

// The whole file, at most `limit_bytes`; a larger one is invalid.
Result<std::string> read_file(const std::string& path, std::size_t limit_bytes);
Result<std::string> read_file_at(int directory_fd, const char* name, std::size_t limit_bytes);

// Writes a new file in the directory of `path`, fsyncs it, renames it over `path` and fsyncs the
// directory: a reader sees the old content or the new, never a part. Errors: invalid (a link, a
// directory, a device or a pipe of that name, which stays what it is), denied
// (PlaceRule::exclusive), and those of the files. The old content stays then.
Status replace_file(const std::string& path, std::string_view content, unsigned mode = 0644);

// The same for a file that another program reads, in a directory that may be another user's: the
// rule is PlaceRule::shared, the mode is 0644 whatever the umask, a link of that name is replaced,
// and nothing is forced to the disk.
Status replace_shared_file(const std::string& path, std::string_view content);
// Removes what that wrote, where it is there.
void remove_shared_file(const std::string& path);

// The same piece by piece, for what should not be in memory at once. Without commit() the old
// content stays.
class FileReplacement {
 public:
  static Result<FileReplacement> create(const std::string& path, unsigned mode = 0644);
  // In a place that is held already; `path` appears in errors.
  static Result<FileReplacement> create(HeldPlace place, const std::string& path, unsigned mode);
  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();

  Status write(std::string_view content);
  Status commit();

 private:
  friend Status replace_shared_file(const std::string& path, std::string_view content);

  FileReplacement(HeldPlace place, std::string path, NewFile file);
  // Gives the new file its name.
  Status rename_into_place();

  HeldPlace place_;
  std::string path_;  // for errors
  NewFile file_;      // its name is empty once it is gone
};

}  // namespace cgphase
