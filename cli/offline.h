// Output of verbs that need no daemon: a file or standard output, and an exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"

namespace cgphase {

inline constexpr const char* kInstalledModel = "/usr/share/cgphase/model.json";
inline constexpr const char* kModelHelp = "Model file [/usr/share/cgphase/model.json]";

// Path of the default model: kInstalledModel. A command that was built and not installed uses the
// model of its source tree (TREE/BUILD/bin/cgphase, TREE/build/PRESET/bin/cgphase).
std::string default_model_path();

// Exit code for an error of an input or output file: 6 invalid or not found, 5 not permitted, 1 any
// other failure.
int exit_code_of(const Error& error);

// Prints "cgphase: TEXT" as one printable line on standard error.
void say(std::string_view text);

// Returns 0. On an error, prints it with say() and returns its exit code.
int finish(const Status& status);

// Writes `text` to a file, which is replaced completely or not at all. A device or a pipe is
// written in place. An empty `path`, "-" or another name of standard output means standard output.
Status emit(const std::string& text, const std::string& path);

// Prints a summary of what was written to `output`: on standard output, or on standard error if
// `output` is standard output.
Status emit_beside(const std::string& text, const std::string& output);

// Like emit(), piece by piece, for output that should not be in memory as a whole. The file appears
// with finish().
class TextOutput {
 public:
  static Result<TextOutput> open(const std::string& path, unsigned mode = 0644);
  Status write(std::string_view text);
  // Appends the content of another file.
  Status copy(const std::string& from);
  Status finish();
  // True if the output is a stream: nothing is replaced at the end, and no temporary file is left
  // behind.
  bool writes_through() const { return !file_; }

 private:
  std::optional<FileReplacement> file_;
  Fd stream_;  // if neither is set: standard output
};

}  // namespace cgphase
