// Runs another program and waits for it.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "cli/daemon_client.h"

namespace cgphase {

// Returns the path of `name` beside this program, else `installed`; empty if neither can be
// executed.
std::string find_program(const std::string& name, const std::string& installed);

struct ProgramEnd {
  std::optional<int> exit;  // absent if a signal ended it
  std::string said;         // at most kSaidLimitBytes; the rest is dropped
};
inline constexpr std::size_t kSaidLimitBytes = 64 * 1024;

// Runs a program; the first of `words` is its path. Captures what it writes to `heard`, which is
// STDOUT_FILENO or STDERR_FILENO. The other stream is inherited. Complaints: failure, if the
// program cannot be started.
std::expected<ProgramEnd, Complaint> run_program(std::vector<std::string> words, int heard);

// Like run_program(), but the first of `words` is looked up in $PATH. Standard output goes to
// `file`, standard error is captured, and standard input is empty. The program is killed after
// `limit`.
std::expected<ProgramEnd, Complaint> run_program_into(const Fd& file,
                                                      std::vector<std::string> words,
                                                      std::chrono::milliseconds limit);

}  // namespace cgphase
