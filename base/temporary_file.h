// A place on disk for what must not fill the memory.
#pragma once

#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

// $TMPDIR where that is set, else /var/tmp, which is a disk also where /tmp lies in memory, and
// /tmp on a system without that.
std::string temporary_folder();

// An empty file in temporary_folder() to write and to read, which has no name and is gone with its
// descriptor. Errors name the folder: not_found, denied, io.
Result<Fd> unlinked_file();

// An empty directory of mode 0700 in temporary_folder(), for programs and libraries that write by
// path. It goes with the object, and all that is in it.
class PrivateFolder {
 public:
  // Errors name the folder; denied where other users can change it and we run as root.
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
