#include "cli/offline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr int kFoldersOfBuilds = 2;
constexpr int kExitFailure = 1, kExitDenied = 5, kExitInput = 6;

// /dev/stdout cannot be opened where it is a socket, nor replaced where others write behind it.
bool is_standard_output(const std::string& path) {
  struct stat named{}, standard{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &standard) == 0 &&
         named.st_dev == standard.st_dev && named.st_ino == standard.st_ino;
}

// Takes a text, and stays what it is.
bool is_stream(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
         !S_ISDIR(status.st_mode);
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

Result<TextOutput> TextOutput::open(const std::string& path) {
  TextOutput output;
  if (path.empty() || is_standard_output(path)) return output;
  if (is_stream(path)) {
    Result<Fd> stream = open_path(path, O_WRONLY | O_NOCTTY);
    if (!stream) return std::unexpected(stream.error());
    output.stream_ = *std::move(stream);
    return output;
  }
  Result<FileReplacement> file = FileReplacement::create(path);
  if (!file) return std::unexpected(file.error());
  output.file_.emplace(*std::move(file));
  return output;
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
