// Reads files of engines on the host. They may belong to an ordinary user, who can put a link, a
// pipe or a slow file system in place of each of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

inline constexpr std::size_t kMostDirectoryEntries = 4096;  // of one directory that is listed

// Owned and used by one thread.
class HostFiles {
 public:
  // `root` is "/" except in tests. For "/" it is the root of process 1 below `proc_root`, because
  // the daemon's unit hides /home and /run/user from the daemon, but rootless engines keep their
  // files there. Without permission for that it is "/".
  HostFiles(const std::string& root, const std::string& proc_root);

  // Reads a regular file. `path` is absolute on the host. For root (`owner` 0), links are followed
  // within the host. For another owner, no link is followed, the file must be the owner's, and
  // network file systems and FUSE are not entered, because they may never answer.
  // Errors: not_found, invalid (too large, a link, no regular file), denied (another owner), io.
  Result<std::string> read(const std::string& path, uid_t owner, std::size_t limit_bytes) const;

  // Whether the path exists; for another owner than root under the same rules.
  bool exists(const std::string& path, uid_t owner) const;

  // Whether the path does not exist. False if that cannot be known.
  bool is_absent(const std::string& path) const;

  // Reads the table of mounts again at the next need.
  void forget() { mounts_.reset(); }

  // Names in a directory, without hidden ones. Empty if it cannot be listed.
  std::vector<std::string> names_in(const std::string& path, uid_t owner) const;

 private:
  Result<Fd> open(const std::string& path, uid_t owner, int flags) const;

  Fd root_;
  std::string proc_root_;
  mutable std::optional<std::string> mounts_;
};

}  // namespace cgphase
