#include "base/temporary_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

namespace cgphase {

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/var/tmp";
}

Result<Fd> unlinked_file() {
  const std::string folder = temporary_folder();
  std::string name = folder + "/cgphase-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  // Whatever it was: not what the user asked to be read.
  if (fd < 0)
    return failure(ErrorKind::io, errno_failure(folder + ": a temporary file", errno).error().text);
  ::unlink(name.c_str());
  return Fd(fd);
}

}  // namespace cgphase
