// The directory that an output file is made in. It is opened once and held, so that nobody can
// swap it for another one between two steps.
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
  std::string name;  // in it: one path element, never "." or ".."
};

enum class PlaceRule {
  // As root: every directory on the way can be changed by root and by the caller alone.
  exclusive,
  // As root: the directories may be another user's, but no link that another user made is followed.
  shared,
};

// Root, this process's user and, as root below sudo, the user who called sudo.
std::vector<uid_t> trusted_users();

// Nobody but `trusted` can remove or rename what they made in a directory of this owner and mode.
// A sticky directory such as /tmp qualifies: there only the owner of an entry can.
bool is_exclusive(const struct stat& directory, std::span<const uid_t> trusted);

// Opens the directory of `path`. As another user than root the rule asks for nothing: that user
// loses no rights. Errors: denied (the rule), invalid (`path` ends in no name), those of open(2).
Result<HeldPlace> hold_place(const std::string& path, PlaceRule rule);

struct NewFile {
  Fd fd;  // for reading and writing
  std::string name;
};
// A file of a new name in a held directory; nothing that is there is opened or followed.
Result<NewFile> create_new_file(int directory_fd, unsigned mode);

}  // namespace cgphase
