#include "base/result.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace cgphase {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::gone: return "gone";
    case ErrorKind::not_found: return "not found";
    case ErrorKind::invalid: return "invalid";
    case ErrorKind::denied: return "denied";
    case ErrorKind::io: return "io";
    case ErrorKind::unsupported: return "unsupported";
  }
  return "io";
}

std::string errno_word(int error_number) {
  const char* name = ::strerrorname_np(error_number);
  return name != nullptr ? std::string(name) : std::to_string(error_number);
}

ErrorKind kind_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT: case ENOTDIR: return ErrorKind::not_found;
    case ENODEV: case ESRCH: return ErrorKind::gone;
    case EACCES: case EPERM: case EROFS: return ErrorKind::denied;
    case EINVAL: case ERANGE: return ErrorKind::invalid;
    case ENOSYS: case EOPNOTSUPP: return ErrorKind::unsupported;
    default: return ErrorKind::io;
  }
}

std::unexpected<Error> errno_failure(std::string_view what, int error_number) {
  const char* description = ::strerrordesc_np(error_number);
  std::string text(what);
  text += ": ";
  text += description != nullptr ? description : "unknown error";
  text += " (" + errno_word(error_number) + ")";
  return std::unexpected(Error{kind_of_errno(error_number), std::move(text)});
}

std::unexpected<Error> failure(ErrorKind kind, std::string text) {
  return std::unexpected(Error{kind, std::move(text)});
}

}  // namespace cgphase
