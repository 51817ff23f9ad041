// How the verbs end that need no daemon: a file or standard output, and an exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"

namespace cgphase {

inline constexpr const char* kInstalledModel = "/usr/share/cgphase/model.json";

// Where the default model lies: kInstalledModel, or for a command that was built and not installed
// the one of the source tree it lies in (TREE/BUILD/bin/cgphase, TREE/build/PRESET/bin/cgphase).
std::string default_model_path();

// Of a file that a verb reads or writes: 6 invalid or not there, 5 not permitted, 1 any other
// failure.
int exit_code_of(const Error& error);

// "cgphase: TEXT" as one printable line on standard error.
void say(std::string_view text);

// 0, or after say() the exit code of the error.
int finish(const Status& status);

// To the file, which appears whole or not at all; into what is there where that is a device or a
// pipe; to standard output where `path` is empty, "-" or another name of it.
Status emit(const std::string& text, const std::string& path);

// For people, about what went to `output`: to standard output, or to standard error where that is
// taken.
Status emit_beside(const std::string& text, const std::string& output);

// The same piece by piece, for what should not be in memory at once; the file appears with
// finish().
class TextOutput {
 public:
  static Result<TextOutput> open(const std::string& path, unsigned mode = 0644);
  Status write(std::string_view text);
  // All of another file.
  Status copy(const std::string& from);
  Status finish();
  // Whether there is nothing to put in its place at the end, nor to clear away without that.
  bool writes_through() const { return !file_; }

 private:
  std::optional<FileReplacement> file_;
  Fd stream_;  // neither: standard output
};

}  // namespace cgphase
