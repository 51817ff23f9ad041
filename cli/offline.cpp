#include "cli/offline.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr int kFoldersOfBuilds = 2;
constexpr int kExitFailure = 1, kExitDenied = 5, kExitInput = 6;

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::unsupported:
    case ErrorKind::not_found: return kExitInput;
    case ErrorKind::denied: return kExitDenied;
    default: return kExitFailure;
  }
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

int finish(const char* verb, const Status& status) {
  if (status) return 0;
  fmt::print(stderr, "cgphase {}: {}\n", verb, printable(status.error().text));
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
  if (path.empty()) return output;
  Result<FileReplacement> file = FileReplacement::create(path);
  if (!file) return std::unexpected(file.error());
  output.file_.emplace(*std::move(file));
  return output;
}

Status TextOutput::write(std::string_view text) {
  if (file_) return file_->write(text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    return failure(ErrorKind::io, "standard output cannot be written");
  return {};
}

Status TextOutput::finish() {
  if (file_) return file_->commit();
  if (std::fflush(stdout) != 0)
    return failure(ErrorKind::io, "standard output cannot be written");
  return {};
}

}  // namespace cgphase
