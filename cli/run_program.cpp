#include "cli/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/fd.h"

extern char** environ;

namespace cgphase {
namespace {

std::unexpected<Complaint> not_run(std::string text) {
  return std::unexpected(Complaint{Exit::failure, std::move(text)});
}

using Instant = std::chrono::steady_clock::time_point;

Instant now() { return std::chrono::steady_clock::now(); }

// Reads to the end even if the text is too long, because the program would block on a full pipe.
// Returns false if the end is not reached by `end`.
bool read_said(const Fd& pipe, std::optional<Instant> end, std::string& text) {
  char buffer[4096];
  for (;;) {
    if (end) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - now());
      pollfd said{.fd = pipe.get(), .events = POLLIN, .revents = 0};
      if (left.count() <= 0) return false;
      if (::poll(&said, 1, static_cast<int>(left.count())) <= 0) continue;
    }
    const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, std::min(static_cast<std::size_t>(got), kSaidLimitBytes - text.size()));
  }
}

// Returns the exit status; absent if a signal ended the program or waitpid failed.
std::optional<int> wait_for(pid_t child) {
  int status = 0;
  pid_t ended = -1;
  while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  return ended == child && WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return arguments;
}

// `start` starts the program with its descriptor `heard` connected to our pipe.
template <class Start>
std::expected<ProgramEnd, Complaint> run_and_hear(const std::string& program, int heard,
                                                  std::optional<Instant> limit,
                                                  Start start) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return not_run("pipe: " + errno_word(errno));
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), heard);
  pid_t child = -1;
  const int error = start(child, actions);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return not_run("run " + program + ": " + errno_word(error));
  writing.reset();
  ProgramEnd end;
  if (!read_said(reading, limit, end.said)) ::kill(child, SIGKILL);
  end.exit = wait_for(child);
  return end;
}

}  // namespace

std::string find_program(const std::string& name, const std::string& installed) {
  std::error_code ignored;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  // Without its folder the name would be looked up in $PATH or in the current folder.
  const std::string beside = own.empty() ? installed : (own.parent_path() / name).string();
  for (const std::string& path : {beside, installed})
    if (!path.empty() && ::access(path.c_str(), X_OK) == 0) return path;
  return "";
}

std::expected<ProgramEnd, Complaint> run_program(std::vector<std::string> words, int heard) {
  const auto start = [&words](pid_t& child, posix_spawn_file_actions_t& actions) {
    return ::posix_spawn(&child, words.front().c_str(), &actions, nullptr, pointers(words).data(),
                         environ);
  };
  return run_and_hear(words.front(), heard, std::nullopt, start);
}

std::expected<ProgramEnd, Complaint> run_program_into(const Fd& file,
                                                      std::vector<std::string> words,
                                                      std::chrono::milliseconds limit) {
  const auto start = [&](pid_t& child, posix_spawn_file_actions_t& actions) {
    ::posix_spawn_file_actions_adddup2(&actions, file.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    return ::posix_spawnp(&child, words.front().c_str(), &actions, nullptr, pointers(words).data(),
                          environ);
  };
  return run_and_hear(words.front(), STDERR_FILENO, now() + limit, start);
}

}  // namespace cgphase
