#include "base/held_place.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/parse.h"

namespace cgphase {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own limit
constexpr int kNameTries = 16;

std::unexpected<Error> refused(const std::string& path, const char* why) {
  return failure(ErrorKind::denied,
                 path + ": " + why +
                     ", so root does not write there: write to standard output with -o - or to a "
                     "directory that only you can change");
}

// Opens a directory element by element, as root. Each element is checked before the next is opened.
class Walk {
 public:
  Walk(const std::string& path, PlaceRule rule) : path_(path), rule_(rule) {}

  Result<Fd> open(std::string rest) {
    if (Status begun = enter(rest.starts_with('/') ? "/" : "."); !begun)
      return std::unexpected(begun.error());
    while (!rest.empty()) {
      const std::size_t slash = rest.find('/');
      const std::string element = rest.substr(0, slash);
      rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
      if (element.empty() || element == ".") continue;
      if (Status stepped = step(element, rest); !stepped) return std::unexpected(stepped.error());
    }
    return std::move(at_);
  }

 private:
  Status enter(const char* start) {
    Result<Fd> fd = open_path(start, O_PATH | O_DIRECTORY);
    if (!fd) return std::unexpected(fd.error());
    return arrive(*std::move(fd));
  }

  Status arrive(Fd directory) {
    struct stat status{};
    if (::fstat(directory.get(), &status) != 0) return errno_failure(path_, errno);
    exclusive_ = is_exclusive(status, trusted_);
    if (!exclusive_ && rule_ == PlaceRule::exclusive)
      return refused(path_, "other users can change a directory on this path");
    at_ = std::move(directory);
    return {};
  }

  Status step(const std::string& element, std::string& rest) {
    Fd next(::openat(at_.get(), element.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!next.valid() || ::fstat(next.get(), &status) != 0) return errno_failure(path_, errno);
    if (S_ISDIR(status.st_mode)) return arrive(std::move(next));
    if (!S_ISLNK(status.st_mode)) return errno_failure(path_, ENOTDIR);
    if (++links_ > kMostLinks) return errno_failure(path_, ELOOP);
    const bool trusted = std::ranges::find(trusted_, status.st_uid) != trusted_.end();
    if (!exclusive_ || !trusted)
      return refused(path_, "another user can change a link on this path");
    std::array<char, PATH_MAX> target;
    const ssize_t length = ::readlinkat(next.get(), "", target.data(), target.size());
    if (length < 0) return errno_failure(path_, errno);
    const std::string_view text(target.data(), static_cast<std::size_t>(length));
    rest = std::string(text) + "/" + rest;
    if (rest.size() > 2 * PATH_MAX) return errno_failure(path_, ENAMETOOLONG);
    return text.starts_with('/') ? enter("/") : Status{};
  }

  const std::string& path_;
  const PlaceRule rule_;
  const std::vector<uid_t> trusted_ = trusted_users();
  Fd at_;
  bool exclusive_ = false;
  int links_ = 0;
};

}  // namespace

std::vector<uid_t> trusted_users() {
  std::vector<uid_t> users = {0, ::geteuid()};
  const char* const caller = ::geteuid() == 0 ? std::getenv("SUDO_UID") : nullptr;
  const auto uid = caller != nullptr ? parse_u64(caller) : std::nullopt;
  if (uid && *uid < UINT32_MAX) users.push_back(static_cast<uid_t>(*uid));
  return users;
}

bool is_exclusive(const struct stat& directory, std::span<const uid_t> trusted) {
  if (std::ranges::find(trusted, directory.st_uid) == trusted.end()) return false;
  const bool others_write = (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return !others_write || (directory.st_mode & S_ISVTX) != 0;
}

Result<HeldPlace> hold_place(const std::string& path, PlaceRule rule) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);  // npos + 1 is 0
  if (name.empty() || name == "." || name == "..")
    return failure(ErrorKind::invalid, path + ": does not end in a file name");
  const std::string parent = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  Result<Fd> directory = ::geteuid() == 0 ? Walk(path, rule).open(parent)
                                          : open_path(parent, O_PATH | O_DIRECTORY);
  if (!directory) return failure(directory.error().kind, directory.error().text);
  return HeldPlace{*std::move(directory), name};
}

Result<NewFile> create_new_file(int directory_fd, unsigned mode) {
  for (int tries = 1;; ++tries) {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number)
      return errno_failure("getrandom", errno);
    char name[32];
    std::snprintf(name, sizeof name, ".cgphase-%016llx", static_cast<unsigned long long>(number));
    const int fd = ::openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            mode);
    if (fd >= 0) return NewFile{Fd(fd), name};
    if (errno != EEXIST || tries == kNameTries) return errno_failure("new file", errno);
  }
}

}  // namespace cgphase
