// Temporary files on disk, for data that is too large for memory.
#pragma once

#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

// $TMPDIR if it is set, else /var/tmp, which is on disk even if /tmp is in memory. /tmp is used if
// /var/tmp is not writable.
std::string temporary_folder();

// An empty file in temporary_folder(), open for reading and writing. It has no name and disappears
// with its descriptor. The error (io) names the folder.
Result<Fd> unlinked_file();

// An empty directory of mode 0700 in temporary_folder(), for programs and libraries that write by
// path. The destructor removes it and its content.
class PrivateFolder {
 public:
  // The error names the folder. As root it is an error if other users can change the folder.
  static Result<PrivateFolder> make();
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace cgphase
