// Failures are values. What the kernel, the disk, a user or a peer can cause is a Result, never an
// exception.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace cgphase {

// What a caller can do about a failure. The text is for people; only the kind is for code.
enum class ErrorKind {
  gone,         // the cgroup or process vanished: normal, drop it quietly
  not_found,    // the named object does not exist
  invalid,      // input or value refused; nothing was changed
  denied,       // not permitted
  io,           // the disk, the kernel or a peer failed
  unsupported,  // this host or build cannot do it
};

struct Error {
  ErrorKind kind = ErrorKind::io;
  std::string text;  // what was tried, on which object, why (errno word), what to do next
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// The word for a kind: "gone", "not found", ...
std::string_view to_string(ErrorKind kind);

// "ENOENT" for 2. A number without a name becomes its decimal text.
std::string errno_word(int error_number);

// ENOENT, ENOTDIR -> not_found; ENODEV, ESRCH -> gone; EACCES, EPERM, EROFS -> denied; EINVAL,
// ERANGE -> invalid; ENOSYS, EOPNOTSUPP -> unsupported; all others -> io.
ErrorKind kind_of_errno(int error_number);

// "WHAT: No such file or directory (ENOENT)", with the kind of the errno.
std::unexpected<Error> errno_failure(std::string_view what, int error_number);

std::unexpected<Error> failure(ErrorKind kind, std::string text);

}  // namespace cgphase
