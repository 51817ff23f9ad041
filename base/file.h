// Reads and replaces whole small files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/held_place.h"
#include "base/result.h"

namespace cgphase {

// Reads the whole file. A file larger than `limit_bytes` is invalid.
Result<std::string> read_file(const std::string& path, std::size_t limit_bytes);
Result<std::string> read_file_at(int directory_fd, const char* name, std::size_t limit_bytes);

// Writes a new file in the directory of `path`, fsyncs it, renames it over `path` and fsyncs the
// directory. A reader sees the old content or the new, never a part. Errors: invalid (`path` is a
// link, a directory, a device or a pipe), denied (PlaceRule::exclusive), and those of the files.
// After an error the old content is unchanged.
Status replace_file(const std::string& path, std::string_view content, unsigned mode = 0644);

// Replaces a file that another program reads, in a directory that may belong to another user. The
// rule is PlaceRule::shared and the mode is 0644 whatever the umask. A link of that name is
// replaced. Nothing is synced to the disk.
Status replace_shared_file(const std::string& path, std::string_view content);
// Removes a file that replace_shared_file() wrote, if it exists.
void remove_shared_file(const std::string& path);

// Replaces a file piece by piece, for content that is too large for memory. Without commit() the
// old content is kept. Owned and used by one thread.
class FileReplacement {
 public:
  static Result<FileReplacement> create(const std::string& path, unsigned mode = 0644);
  // In a directory that is open already. `path` appears in errors.
  static Result<FileReplacement> create(HeldPlace place, const std::string& path, unsigned mode);
  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();

  Status write(std::string_view content);
  Status commit();

 private:
  friend Status replace_shared_file(const std::string& path, std::string_view content);

  FileReplacement(HeldPlace place, std::string path, NewFile file);
  // Renames the new file over the old one.
  Status rename_into_place();

  HeldPlace place_;
  std::string path_;  // for errors
  NewFile file_;      // its name is empty once it was renamed or removed
};

}  // namespace cgphase
