// The directory in which an output file is created. It is opened once and its descriptor is kept,
// so that nobody can replace the directory between two steps.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

struct HeldPlace {
  Fd directory;      // O_PATH
  std::string name;  // of the file in `directory`: one path element, never "." or ".."
};

enum class PlaceRule {
  // As root: only root and the caller can change the directories on the path.
  exclusive,
  // As root: the directories may belong to another user, but no link of another user is followed.
  shared,
};

// Root, the user of this process, and the user who called sudo if this process runs under sudo.
std::vector<uid_t> trusted_users();

// True if only users in `trusted` can remove or rename their entries in a directory with this owner
// and mode. A sticky directory such as /tmp qualifies: only the owner of an entry can remove it.
bool is_exclusive(const struct stat& directory, std::span<const uid_t> trusted);

// Opens the directory of `path`. The rule applies to root only, because no other user loses rights
// by it. Errors: denied (the rule), invalid (`path` does not end in a file name), those of open(2).
Result<HeldPlace> hold_place(const std::string& path, PlaceRule rule);

struct NewFile {
  Fd fd;  // for reading and writing
  std::string name;
};
// Creates a file with a new name in an open directory. Existing entries are never opened or
// followed.
Result<NewFile> create_new_file(int directory_fd, unsigned mode);

}  // namespace cgphase
