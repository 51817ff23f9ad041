#include "cli/restore_alone.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"

extern char** environ;

namespace cgphase {
namespace {

constexpr const char* kInstalled = "/usr/lib/cgphase/cgphase-restore";
constexpr std::size_t kOutputLimitBytes = 64 * 1024;

std::unexpected<Complaint> failed(std::string text) {
  return std::unexpected(Complaint{Exit::failure, std::move(text)});
}

std::string read_to_end(const Fd& pipe) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    if (text.size() < kOutputLimitBytes) text.append(buffer, static_cast<std::size_t>(got));
  }
}

// Standard output of the child goes to `out`; its errors go where ours go.
int spawn(pid_t& child, const std::string& program, std::array<std::string, 5> words,
          const Fd& out) {
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(),
                                  environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

std::string find_restore_program() {
  std::error_code ignored;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string beside = own.parent_path() / "cgphase-restore";
  for (const std::string& path : {beside, std::string(kInstalled)})
    if (::access(path.c_str(), X_OK) == 0) return path;
  return "";
}

std::expected<nlohmann::json, Complaint> restore_alone(const std::string& program,
                                                       const std::string& runtime_directory,
                                                       const std::string& cgroup_root) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("pipe: " + errno_word(errno));
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  pid_t child = -1;
  const int error =
      spawn(child, program,
            {program, "--runtime-dir", runtime_directory, "--cgroup-root", cgroup_root}, writing);
  if (error != 0) return failed("run " + program + ": " + errno_word(error));
  writing.reset();
  const std::string said = read_to_end(reading);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return failed(program + " could not restore all limits; what it could is restored: " +
                  printable(trim(said)));
  return nlohmann::json{{"schema", kSchema},
                        {"done", "no daemon answers; cgphase-restore: " + printable(trim(said))},
                        {"undo", ""},
                        {"changes", nlohmann::json::array()},
                        {"failures", nlohmann::json::array()}};
}

}  // namespace cgphase
