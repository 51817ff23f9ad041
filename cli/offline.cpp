#include "cli/offline.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/file.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr int kExitFailure = 1, kExitDenied = 5, kExitInput = 6;

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::not_found: return kExitInput;
    case ErrorKind::denied: return kExitDenied;
    default: return kExitFailure;
  }
}

}  // namespace

int finish(const char* verb, const Status& status) {
  if (status) return 0;
  fmt::print(stderr, "cgphase {}: {}\n", verb, printable(status.error().text));
  return exit_code_of(status.error());
}

Status emit(const std::string& text, const std::string& path) {
  if (!path.empty()) return replace_file(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return failure(ErrorKind::io, "standard output cannot be written");
  return {};
}

}  // namespace cgphase
