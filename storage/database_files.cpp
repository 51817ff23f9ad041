#include "storage/database_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.h"

namespace cgphase {

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::uint64_t file_bytes(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

Result<std::string> set_aside(const std::string& path) {
  for (int number = 1; number <= kMaxQuarantined; ++number) {
    const std::string aside = path + ".corrupt-" + std::to_string(number);
    if (file_exists(aside) || file_exists(aside + "-wal")) continue;
    if (::rename(path.c_str(), aside.c_str()) != 0)
      return errno_failure("moving " + escape_name(path) + " aside", errno);
    if (::rename((path + "-wal").c_str(), (aside + "-wal").c_str()) != 0 && errno != ENOENT)
      return errno_failure("moving " + escape_name(path) + "-wal aside", errno);
    return aside;
  }
  return failure(ErrorKind::io, escape_name(path) + ": corrupt, and " +
                                    std::to_string(kMaxQuarantined) +
                                    " corrupt ones lie beside it already: look at this disk, then "
                                    "delete them");
}

}  // namespace cgphase
