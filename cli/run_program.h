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

// `name` beside this program, else `installed`; empty where neither can be run.
std::string find_program(const std::string& name, const std::string& installed);

struct ProgramEnd {
  std::optional<int> exit;  // absent where a signal ended it
  std::string said;         // at most kSaidLimitBytes; what comes behind is dropped
};
inline constexpr std::size_t kSaidLimitBytes = 64 * 1024;

// The first of `words` is its path. What it writes to `heard`, STDOUT_FILENO or STDERR_FILENO, is
// taken; the other goes where ours goes. Complaints: failure where it cannot be run.
std::expected<ProgramEnd, Complaint> run_program(std::vector<std::string> words, int heard);

// Of anybody: the first of `words` may be a name that $PATH leads to. What it writes to standard
// output goes to `file`, the rest is taken; it has nothing to read, and is killed after `limit`.
std::expected<ProgramEnd, Complaint> run_program_into(const Fd& file,
                                                      std::vector<std::string> words,
                                                      std::chrono::milliseconds limit);

}  // namespace cgphase
