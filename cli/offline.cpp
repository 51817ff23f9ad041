#include "cli/offline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/held_place.h"
#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{64} << 10;
constexpr int kFoldersOfBuilds = 2;
constexpr int kExitFailure = 1, kExitDenied = 5, kExitInput = 6;

// Returns the inherited descriptor that `path` names: "-" and "" for standard output, /dev/stdout,
// /dev/stderr, /dev/fd/N, /proc/self/fd/N. It is written directly: opening it again fails for a
// socket, and replacing the file would break other writers.
std::optional<int> inherited_descriptor(std::string_view path) {
  if (path.empty() || path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.starts_with(folder))
      if (const auto number = parse_u64(path.substr(folder.size())); number && *number <= INT_MAX)
        return static_cast<int>(*number);
  return std::nullopt;
}

bool is_standard_output(const std::string& path) {
  if (const auto inherited = inherited_descriptor(path)) return *inherited == STDOUT_FILENO;
  struct stat named{}, standard{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &standard) == 0 &&
         named.st_dev == standard.st_dev && named.st_ino == standard.st_ino;
}

// True for a device, a pipe or a socket. These are written in place, never replaced.
bool is_stream(mode_t mode) { return !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode); }

// Opens the stream of that name; returns no descriptor if it is not a stream. Root does not open a
// stream of another user, who could read what is written.
Result<Fd> open_stream(const HeldPlace& place, const std::string& path) {
  struct stat named{}, opened{};
  const int directory = place.directory.get();
  if (::fstatat(directory, place.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_stream(named.st_mode))
    return Fd();
  const std::vector<uid_t> trusted = trusted_users();
  if (::geteuid() == 0 && std::ranges::find(trusted, named.st_uid) == trusted.end())
    return failure(ErrorKind::denied, path + ": another user made this pipe or device, so root "
                                             "does not write to it: choose another name");
  Result<Fd> stream = open_at(directory, place.name.c_str(), O_WRONLY | O_NOCTTY | O_NOFOLLOW);
  if (!stream) return failure(stream.error().kind, path + ": " + stream.error().text);
  if (::fstat(stream->get(), &opened) != 0 || opened.st_dev != named.st_dev ||
      opened.st_ino != named.st_ino)
    return failure(ErrorKind::io, path + ": was replaced while it was opened: try again");
  return stream;
}

}  // namespace

std::string default_model_path() {
  std::error_code error;
  if (std::filesystem::exists(kInstalledModel, error)) return kInstalledModel;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return kInstalledModel;
  auto tree = program.parent_path().parent_path();
  for (int above = 0; above < kFoldersOfBuilds; ++above) {
    tree = tree.parent_path();
    const auto model = tree / "model/default_model.json";
    if (std::filesystem::exists(model, error)) return model;
  }
  return kInstalledModel;
}

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::unsupported:
    case ErrorKind::not_found: return kExitInput;
    case ErrorKind::denied: return kExitDenied;
    default: return kExitFailure;
  }
}

void say(std::string_view text) { fmt::print(stderr, "cgphase: {}\n", printable(text)); }

int finish(const Status& status) {
  if (status) return 0;
  say(status.error().text);
  return exit_code_of(status.error());
}

Status emit(const std::string& text, const std::string& path) {
  Result<TextOutput> output = TextOutput::open(path);
  if (!output) return std::unexpected(output.error());
  if (Status written = output->write(text); !written) return written;
  return output->finish();
}

Status emit_beside(const std::string& text, const std::string& output) {
  return emit(text, is_standard_output(output) ? "/dev/stderr" : "");
}

Result<TextOutput> TextOutput::open(const std::string& path, unsigned mode) {
  TextOutput output;
  if (is_standard_output(path)) return output;
  if (const auto inherited = inherited_descriptor(path)) {
    output.stream_.reset(::fcntl(*inherited, F_DUPFD_CLOEXEC, 0));
    if (!output.stream_.valid()) return errno_failure(path, errno);
    return output;
  }
  Result<HeldPlace> place = hold_place(path, PlaceRule::exclusive);
  if (!place) return std::unexpected(place.error());
  Result<Fd> stream = open_stream(*place, path);
  if (!stream) return std::unexpected(stream.error());
  output.stream_ = *std::move(stream);
  if (output.stream_.valid()) return output;
  Result<FileReplacement> file = FileReplacement::create(*std::move(place), path, mode);
  if (!file) return std::unexpected(file.error());
  output.file_.emplace(*std::move(file));
  return output;
}

Status TextOutput::copy(const std::string& from) {
  const Result<Fd> fd = open_path(from, O_RDONLY | O_NOFOLLOW);
  if (!fd) return std::unexpected(fd.error());
  std::vector<char> piece(kCopyBytes);
  for (;;) {
    const ssize_t got = ::read(fd->get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_failure(from, errno);
    if (got == 0) return {};
    if (Status kept = write({piece.data(), static_cast<std::size_t>(got)}); !kept) return kept;
  }
}

Status TextOutput::write(std::string_view text) {
  if (file_) return file_->write(text);
  if (stream_.valid()) return write_all(stream_.get(), text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    return failure(ErrorKind::io, "standard output cannot be written");
  return {};
}

Status TextOutput::finish() {
  if (file_) return file_->commit();
  if (stream_.valid()) return {};
  if (std::fflush(stdout) != 0)
    return failure(ErrorKind::io, "standard output cannot be written");
  return {};
}

}  // namespace cgphase
