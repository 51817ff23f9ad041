#include "base/temporary_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/held_place.h"

namespace cgphase {
namespace {

// The kind is always io, because the failure does not concern the file that the user named.
std::unexpected<Error> no_temporary(const Error& error) {
  return failure(ErrorKind::io,
                 temporary_folder() + ": cannot create a temporary file: " + error.text);
}

}  // namespace

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  if (named != nullptr && *named != '\0') return named;
  return ::access("/var/tmp", W_OK | X_OK) == 0 ? "/var/tmp" : "/tmp";
}

Result<Fd> unlinked_file() {
  const Result<HeldPlace> place = hold_place(temporary_folder() + "/file", PlaceRule::exclusive);
  if (!place) return no_temporary(place.error());
  Result<NewFile> file = create_new_file(place->directory.get(), 0600);
  if (!file) return no_temporary(file.error());
  ::unlinkat(place->directory.get(), file->name.c_str(), 0);
  return std::move(file->fd);
}

Result<PrivateFolder> PrivateFolder::make() {
  // For root the path cannot be redirected while it is used: only root can change it.
  std::string path = temporary_folder() + "/cgphase-XXXXXX";
  const Result<HeldPlace> place = hold_place(path, PlaceRule::exclusive);
  if (!place) return no_temporary(place.error());
  if (::mkdtemp(path.data()) == nullptr) return errno_failure(path, errno);
  return PrivateFolder(std::move(path));
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace cgphase
