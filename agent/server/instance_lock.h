// One daemon per runtime directory. The lock is an flock on DIRECTORY/lock, so the kernel releases
// it when the daemon ends for any reason. The file stays.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

class InstanceLock {
 public:
  // Makes a missing directory (0750; its parent must exist). Refuses a directory that is a link,
  // that another user owns, or that others may write to. Errors: denied (those), invalid (another
  // daemon has the lock; the text names its pid and what to do), io.
  static Result<InstanceLock> acquire(const std::string& directory);

  // The open directory. O_PATH is not set, so that fchown works.
  int directory_fd() const { return directory_.get(); }
  const std::string& directory() const { return path_; }

 private:
  InstanceLock(std::string path, Fd directory, Fd file)
      : path_(std::move(path)), directory_(std::move(directory)), file_(std::move(file)) {}

  std::string path_;
  Fd directory_;
  Fd file_;
};

}  // namespace cgphase
