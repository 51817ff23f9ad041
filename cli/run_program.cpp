#include "cli/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <initializer_list>

#include "base/fd.h"

extern char** environ;

namespace cgphase {
namespace {

std::unexpected<Complaint> not_run(std::string text) {
  return std::unexpected(Complaint{Exit::failure, std::move(text)});
}

// To the end also of what is too long, or the program would wait for us.
std::string read_said(const Fd& pipe) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, std::min(static_cast<std::size_t>(got), kSaidLimitBytes - text.size()));
  }
}

int spawn_program(pid_t& child, std::vector<std::string>& words, const Fd& to,
                  std::initializer_list<int> heard) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int stream : heard) ::posix_spawn_file_actions_adddup2(&actions, to.get(), stream);
  const int error = ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(),
                                   environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// The exit status; absent where a signal ended it.
std::optional<int> wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
}

}  // namespace

std::string find_program(const std::string& name, const std::string& installed) {
  std::error_code ignored;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string beside = own.parent_path() / name;
  for (const std::string& path : {beside, installed})
    if (::access(path.c_str(), X_OK) == 0) return path;
  return "";
}

std::expected<ProgramEnd, Complaint> run_program(std::vector<std::string> words, int heard) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return not_run("pipe: " + errno_word(errno));
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  pid_t child = -1;
  if (const int error = spawn_program(child, words, writing, {heard}); error != 0)
    return not_run("run " + words.front() + ": " + errno_word(error));
  writing.reset();
  ProgramEnd end{.exit = std::nullopt, .said = read_said(reading)};
  end.exit = wait_for(child);
  return end;
}

std::expected<std::optional<int>, Complaint> run_program_into(const Fd& file,
                                                              std::vector<std::string> words) {
  pid_t child = -1;
  if (const int error = spawn_program(child, words, file, {STDOUT_FILENO, STDERR_FILENO});
      error != 0)
    return not_run("run " + words.front() + ": " + errno_word(error));
  return wait_for(child);
}

}  // namespace cgphase
